"""Lines of a stream of server-sent events, as the standard ends them: LF, CR LF or CR, and nothing else.

`str.splitlines`, which HTTP clients use, also breaks at U+0085, U+2028 and U+2029. JSON carries those three as they
are, so that a sentence with one of them would come as half an event.
"""

import re
from collections.abc import Iterable, Iterator

_END = re.compile(rb"\r\n|\n|\r")


def event_lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """The lines of the chunks, without their ends; what stands after the last end is a line, too."""
    begun: list[bytes] = []
    after_cr = False
    for chunk in chunks:
        if after_cr and chunk:
            # The CR at the end of the chunk before has ended its line; its LF may come only now.
            chunk, after_cr = chunk.removeprefix(b"\n"), False
        if not chunk:
            continue
        after_cr = chunk.endswith(b"\r")
        *whole, rest = _END.split(chunk)
        for line in whole:
            yield _text([*begun, line])
            begun = []
        if rest:
            begun.append(rest)
    if begun:
        yield _text(begun)


def _text(parts: list[bytes]) -> str:
    return b"".join(parts).decode("utf-8", "replace")
