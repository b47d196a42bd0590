"""YAML as JSON with fewer quotes: plain data, texts as written, nothing that expands or surprises.

Read from the parser's events, so nothing is composed, resolved or constructed that JSON does not have. Numbers, `true`,
`false` and `null` are those of JSON; everything else that YAML 1.1 would turn into something (`no`, `on`, `1:30`,
`012`, a date) stays the text it is. Anchors, aliases, tags, merge keys and keys given twice are refused.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import yaml

from registry.base import Json
from registry.errors import Fault, WrongUse
from registry.jsontext import MAX_DEPTH

#: Bytes a file may have unless the caller says otherwise.
MAX_BYTES: Final = 8 * 1024 * 1024

_WORDS: Final[dict[str, Json]] = {"": None, "~": None, "null": None, "true": True, "false": False}
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")

#: libyaml when PyYAML was built with it; the same events, ten times as fast.
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load(text: str, *, name: str, max_bytes: int = MAX_BYTES) -> Json:
    """Reads one YAML document; an empty one is None.

    Args:
        text: the file's content.
        name: what to call it in messages.
        max_bytes: a longer text is refused unread.

    Raises:
        WrongUse: `invalid_yaml`; its fault has `name:line:column` as path.
    """
    reader = _Reader(name)
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError:
        reader.refuse("a character is half of a surrogate pair")
    if size > max_bytes:
        reader.refuse(f"{size} bytes, at most {max_bytes} are read")
    try:
        return reader.read(yaml.parse(text, Loader=_LOADER))
    except yaml.YAMLError as error:
        reader.refuse(_problem(error), getattr(error, "problem_mark", None))


@dataclass
class _Open:
    """A mapping or list that is being filled; `key` is the key whose value comes next."""

    value: Any
    key: str | None = None

    @property
    def wants_key(self) -> bool:
        return isinstance(self.value, dict) and self.key is None


class _Reader:
    def __init__(self, name: str) -> None:
        self._name = name
        self._open: list[_Open] = []
        self._root: Json = None
        self._documents = 0

    def read(self, events: Iterator[yaml.Event]) -> Json:
        for event in events:
            self._take(event)
        return self._root

    def refuse(self, reason: str, mark: Any = None) -> NoReturn:
        path = f"{self._name}:{mark.line + 1}:{mark.column + 1}" if mark is not None else self._name
        fault = Fault(path, "invalid_yaml", reason)
        raise WrongUse(f"{path}: {reason}", code=fault.code, faults=[fault])

    def _take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                self.refuse("a second document begins here: one file holds one", event.start_mark)
        elif isinstance(event, yaml.NodeEvent):
            self._node(event)
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            self._place(self._open.pop().value, event)

    def _node(self, event: yaml.NodeEvent) -> None:
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            self.refuse("anchors and aliases are not read: write the value where it is needed", event.start_mark)
        tag = getattr(event, "tag", None)
        if tag is not None:
            self.refuse(f"the tag {tag[:60]} is not read: only plain data is", event.start_mark)
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
            return
        if self._open and self._open[-1].wants_key:
            self.refuse("a key is a text, not a list or an object", event.start_mark)
        if len(self._open) >= MAX_DEPTH:
            self.refuse(f"nested deeper than {MAX_DEPTH} levels", event.start_mark)
        self._open.append(_Open({} if isinstance(event, yaml.MappingStartEvent) else []))

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        holder = self._open[-1] if self._open else None
        if holder is not None and holder.wants_key:
            self._key(holder, event)
        else:
            self._place(event.value if event.style else self._plain(event), event)

    def _key(self, holder: _Open, event: yaml.ScalarEvent) -> None:
        """Keys are texts as written, as in JSON."""
        if event.value == "<<" and not event.style:
            self.refuse("merge keys are not read: write the fields where they are needed", event.start_mark)
        if event.value in holder.value:
            self.refuse(f"the key {event.value[:60]!r} stands twice here", event.start_mark)
        holder.key = event.value

    def _plain(self, event: yaml.ScalarEvent) -> Json:
        """A scalar without quotes: a word or number of JSON, or else its text."""
        text: str = event.value
        if text in _WORDS:
            return _WORDS[text]
        number = _NUMBER.fullmatch(text)
        if number is None:
            return text
        try:
            value = float(text) if number[1] or number[2] else int(text)
        except ValueError:  # more digits than Python reads
            self.refuse(f"a number of {len(text)} digits: put it in quotes", event.start_mark)
        if isinstance(value, float) and math.isinf(value):
            self.refuse("a number is beyond the range of a double: put it in quotes", event.start_mark)
        return value

    def _place(self, value: Json, event: yaml.Event) -> None:
        if not self._open:
            self._root = value
            return
        holder = self._open[-1]
        if isinstance(holder.value, list):
            holder.value.append(value)
        else:
            holder.value[holder.key] = value
            holder.key = None


def _problem(error: yaml.YAMLError) -> str:
    words = [getattr(error, "context", None), getattr(error, "problem", None)]
    return "not YAML: " + (", ".join(word for word in words if word) or str(error).splitlines()[0])
