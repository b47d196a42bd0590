"""What a person should know of proposed files before they install anything: read from their text, nothing is run."""

import ast
import hashlib
import warnings
from collections.abc import Iterator, Mapping
from typing import Final

from registry.base import Json

#: Calls that run text, reach out, or hide what they reach for.
_CALLS: Final = {
    "eval": "runs text as code",
    "exec": "runs text as code",
    "compile": "makes code of text",
    "__import__": "imports by text",
    "open": "opens a file",
    "input": "waits for a person's typing",
    "breakpoint": "starts a debugger",
    "globals": "reaches for names by text",
    "vars": "reaches for names by text",
    "locals": "reaches for names by text",
    "setattr": "sets attributes by text",
    "delattr": "removes attributes by text",
}
_MODULES: Final = {
    "subprocess": "starts programs",
    "pty": "starts programs",
    "multiprocessing": "starts processes",
    "socket": "opens network connections",
    "ssl": "opens network connections",
    "http": "opens network connections",
    "urllib": "opens network connections",
    "requests": "opens network connections",
    "httpx": "opens network connections",
    "httpx2": "opens network connections",
    "aiohttp": "opens network connections",
    "ftplib": "opens network connections",
    "smtplib": "sends mail",
    "os": "reaches the operating system",
    "sys": "reaches the interpreter",
    "shutil": "changes files",
    "pathlib": "reaches files",
    "tempfile": "writes files",
    "ctypes": "calls native code",
    "cffi": "calls native code",
    "pickle": "loads objects that can run code",
    "marshal": "loads code",
    "shelve": "loads objects that can run code",
    "importlib": "imports by text",
    "runpy": "runs files",
    "code": "runs text as code",
    "inspect": "looks into running code",
    "gc": "looks into running code",
    "threading": "starts threads",
    "signal": "changes how the process ends",
}
#: Attributes that lead out of whatever an object is meant to be.
_ATTRIBUTES: Final = frozenset(
    [
        "__class__",
        "__bases__",
        "__base__",
        "__mro__",
        "__subclasses__",
        "__globals__",
        "__builtins__",
        "__code__",
        "__dict__",
        "__getattribute__",
        "__import__",
        "__loader__",
        "__reduce__",
        "__reduce_ex__",
        "f_globals",
        "f_locals",
        "gi_frame",
        "tb_frame",
    ]
)
_MAX_FINDINGS: Final = 200


def findings(sources: Mapping[str, str]) -> list[tuple[str, int | None, str]]:
    """(path, line, what) of everything in Python files that a reviewer should look at."""
    found: list[tuple[str, int | None, str]] = []
    for path, text in sources.items():
        if path.endswith(".py"):
            found += [(path, line, what) for line, what in _of_python(text)]
        if hidden := _hidden(text):
            found.append((path, None, f"holds characters that are not shown or change the order of others ({hidden})"))
    return found[:_MAX_FINDINGS]


def review(facts: Mapping[str, Json], tree: Mapping[str, bytes], found: list[tuple[str, int | None, str]]) -> str:
    """REVIEW.md, of facts only: no sentence of the proposal is taken for one of ours."""
    skills = "\n".join(f"- {_code(name)}{' (acts on the world)' if world else ''}" for name, world in facts["skills"])
    files = "\n".join(
        f"| {_code(path)} | {len(content)} | {hashlib.sha256(content).hexdigest()} |"
        for path, content in sorted(tree.items())
    )
    told = "\n".join(f"- {_code(path)}{f', line {line}' if line else ''}: {what}" for path, line, what in found)
    asked = "\n".join(f"- {_code(one)}" for one in facts["capabilities"])
    return f"""# Review of the proposed plugin {_code(facts["id"])}

An agent wrote these files. Nothing of them was installed, imported or run, and nothing was granted.

Its own words, not ours: {_code(facts["name"])}, version {_code(facts["version"])}

## Skills it would add

{skills}

## Capabilities it asks for

{asked or "None."}

## Files

| path | bytes | sha256 |
|---|---|---|
{files}

## Findings

Read from the parse tree of its Python files. That nothing is found does not mean that nothing is there.

{told or "None."}

## To install it, by hand

1. Read every file, and compare the hashes above.
2. Look at what Officina reads in it: `officina plugins review FOLDER`.
3. Install it with `officina plugins install FOLDER --grant CAPABILITY`, and grant only what it needs of the above.
"""


def _of_python(text: str) -> Iterator[tuple[int | None, str]]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except SyntaxError as error:
        yield error.lineno, f"is no Python: {str(error.msg)[:100]}"
        return
    except (RecursionError, MemoryError, ValueError) as error:
        yield None, f"cannot be parsed: {type(error).__name__}"
        return
    for node in ast.walk(tree):
        yield from _of_node(node)


def _of_node(node: ast.AST) -> Iterator[tuple[int | None, str]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield node.lineno, _imported(alias.name)
    elif isinstance(node, ast.ImportFrom):
        yield node.lineno, _imported("." * node.level + (node.module or ""))
    elif isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else None
        if name in _CALLS:
            yield node.lineno, f"calls {name}: {_CALLS[name]}"
        elif name == "getattr" and not (len(node.args) > 1 and isinstance(node.args[1], ast.Constant)):
            yield node.lineno, "calls getattr with a name made at run time"
        elif name == "getattr":
            yield node.lineno, "calls getattr with a name written as text"
    elif isinstance(node, ast.Attribute) and node.attr in _ATTRIBUTES:
        yield node.lineno, f"uses {node.attr}"
    elif isinstance(node, ast.Name) and node.id in ("__builtins__", "__loader__"):
        yield node.lineno, f"uses {node.id}"


def _imported(name: str) -> str:
    why = _MODULES.get(name.partition(".")[0])
    return f"imports {name[:80]}" + (f": {why}" if why else "")


def _hidden(text: str) -> str:
    odd = {
        c
        for c in text
        if c in "\u061c\u200b\u200c\u200d\u200e\u200f\ufeff" or "\u202a" <= c <= "\u202e" or "\u2066" <= c <= "\u2069"
    }
    return ", ".join(f"U+{ord(c):04X}" for c in sorted(odd))


def _code(text: Json) -> str:
    """Foreign text as code: nothing in it is Markdown, and it stays on its line."""
    plain = "".join(c if c.isprintable() and c not in "`|" else " " for c in str(text))
    return f"`{plain.strip() or ' '}`"
