"""Globs in gitignore style, applied to paths below the folder that is looked at (spec: skills 7.6).

A leading `/` anchors a pattern to that folder; it does not lead out of it: patterns only choose among what was found.
"""

from registry.errors import SkillError
from registry.skills.context import Entry


class Glob:
    """A compiled pattern; without one, everything is chosen.

    Raises:
        SkillError: `invalid_input` for a pattern that cannot be read, or that chooses nothing whatever lies there.
    """

    def __init__(self, pattern: str | None, *, folder: str) -> None:
        self._skip = 0 if folder == "." else len(folder) + 1
        self._spec = None
        if pattern is None:
            return
        from pathspec import GitIgnoreSpec

        try:
            # Linear time, by name: a hundred stars would keep a backtracking matcher busy for ever.
            self._spec = GitIgnoreSpec.from_lines([pattern], backend="re2")
        except ValueError:
            raise SkillError(
                "invalid_input", "glob: the pattern cannot be read; see the syntax of .gitignore"
            ) from None
        if not any(one.include for one in self._spec.patterns):
            raise SkillError(
                "invalid_input", "glob: the pattern chooses nothing (it is blank, a comment or begins '!')"
            )

    def chooses(self, entry: Entry) -> bool:
        below = entry.path[self._skip :]
        return self._spec is None or self._spec.match_file(f"{below}/" if entry.type == "dir" else below)
