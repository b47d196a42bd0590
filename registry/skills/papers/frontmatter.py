"""Front matter: a block of YAML before a Markdown text, which every reader of YAML takes the same way."""

import re
from typing import Any, Final

import yaml

from registry.skills.papers.characters import cleaned

#: Texts that no version of YAML takes for anything else; every other one is quoted.
_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*")
_WORDS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"})


class _Dumper(yaml.SafeDumper):
    """YAML that quotes when in doubt: 1.1 reads `no`, `1:30` and dates as something, 1.2 reads `1e3` as a number."""


def _represent(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_Dumper.add_representer(str, _represent)


def front_matter(values: dict[str, Any]) -> str:
    """The block for a map of scalars, keys in their own order; nothing for an empty map."""
    if not values:
        return ""
    kept = {cleaned(key): cleaned(value) if isinstance(value, str) else value for key, value in values.items()}
    text = yaml.dump(kept, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=float("inf"))
    return f"---\n{text}---\n\n"
