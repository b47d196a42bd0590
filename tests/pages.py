"""The pages of the documentation as tests read them: blocks with their names and markers, lines of a terminal."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"

_OPEN = re.compile(r"^(?P<indent> *)```(?P<language>[\w-]*)[^\n]*$")
_MARK = re.compile(r"<!-- (?P<word>not run|parsed|tested): (?P<why>[^>]+?) -->")
_NAME = re.compile(r"`(?P<name>[\w./-]+)`:")


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str
    #: The file it is, by the line before it.
    name: str | None = None
    #: `not run`, `parsed` or `tested`, and its reason.
    mark: str | None = None
    why: str = ""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@dataclass
class Line:
    """A command as it stands after `$`, and what has to come of it."""

    command: str
    expected: list[str] = field(default_factory=list)


def pages() -> list[Path]:
    """README and all pages; those of `skills/` are made from code and tested beside it."""
    return [ROOT / "README.md", *sorted(path for path in DOCS.rglob("*.md") if path.parent.name != "skills")]


def blocks(page: Path) -> list[Block]:
    """Every fenced block, in order."""
    found, lines, at = [], page.read_text(encoding="utf-8").splitlines(), 0
    while at < len(lines):
        opened = _OPEN.match(lines[at])
        if opened is None:
            at += 1
            continue
        end = next(i for i in range(at + 1, len(lines)) if lines[i].strip() == "```")
        text = "\n".join(one.removeprefix(opened["indent"]) for one in lines[at + 1 : end]) + "\n"
        found.append(Block(page, at + 1, opened["language"], text, *_before(lines[:at])))
        at = end + 1
    return found


def _before(lines: list[str]) -> tuple[str | None, str | None, str]:
    name = mark = None
    why = ""
    for line in [one for one in lines if one.strip()][-1:-3:-1]:
        named, marked = _NAME.fullmatch(line.strip()), _MARK.fullmatch(line.strip())
        if named:
            name = named["name"]
        elif marked:
            mark, why = marked["word"], marked["why"]
        else:
            break
    return name, mark, why


def indented(page: Path) -> Iterator[int]:
    """Numbers of lines that are code by their indent alone: nobody says what they are in."""
    fenced, before = False, ""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip().startswith("```"):
            fenced = not fenced
        elif not fenced and line.startswith("    ") and not before.strip():
            yield number
        before = line


def terminal(block: Block) -> list[Line]:
    """The commands of a block; in `sh` every line is one, in `console` those after `$`."""
    text = block.text.replace("\\\n", " ")
    found: list[Line] = []
    for line in text.splitlines():
        if found and found[-1].command.count("'") % 2:
            found[-1].command += f"\n{line}"  # a quotation that goes on
        elif block.language == "sh" or line.startswith("$ "):
            found.append(Line(line.removeprefix("$ ").strip()))
        elif found and line.strip():
            found[-1].expected.append(line.rstrip())
    return [line for line in found if line.command and not line.command.startswith("#")]


def parts(command: str) -> list[list[str]]:
    """The words of a line, a list for each command between `&&`; comments are left out."""
    found: list[list[str]] = [[]]
    for word in shlex.split(command, comments=True):
        if word == "&&":
            found.append([])
        else:
            found[-1].append(word)
    return found


def matches(expected: list[str], said: str) -> bool:
    """Whether a page's lines are what was said: `…` stands for anything, alone for any lines."""
    pattern = ""
    for line in expected:
        if line.strip() == "…":
            pattern += r"(?:[^\n]*\n)*?"
        else:
            pattern += "[^\\n]*".join(re.escape(part.strip()) for part in line.split("…")) + r"[ \t]*\n"
    lines = "".join(re.sub(r"[ \t]+$", "", line) + "\n" for line in said.strip().splitlines())
    return re.fullmatch(pattern, lines) is not None
