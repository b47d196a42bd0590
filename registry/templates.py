"""Templates of a stand-in script: Jinja in its sandbox, kept small enough that a hostile script cannot hurt the worker.

Statements that could grow a text step by step (`set`, macros, includes) are refused, filters and methods are a list of
those whose result is bounded by what goes in, and what comes out has a ceiling. Unknown names are errors, never blanks.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError, TemplateSyntaxError, Undefined, nodes
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from registry.base import Json
from registry.jsontext import compact

#: Characters one template may have, and characters one may give.
MAX_SOURCE, MAX_RESULT = 100_000, 1_000_000
#: Numbers `range` may give, loops inside loops, bits a product or a power may have.
MAX_RANGE, MAX_LOOPS, MAX_BITS = 1_000, 2, 4_096

_FILTERS = """abs capitalize count d default dictsort first float groupby int items join last length list lower map max
    min reject rejectattr replace reverse round select selectattr sort string sum title trim truncate unique upper
    wordcount"""
_METHODS = """capitalize count endswith find get index isdigit items keys lower lstrip removeprefix removesuffix rstrip
    split splitlines startswith strip title upper values"""
FILTERS, METHODS = frozenset(_FILTERS.split()), frozenset(_METHODS.split())
#: Statements that keep or load a text, through which a small template could make a huge one.
REFUSED = (
    *(nodes.Assign, nodes.AssignBlock, nodes.With, nodes.Macro, nodes.CallBlock, nodes.FilterBlock, nodes.Block),
    *(nodes.Extends, nodes.Include, nodes.Import, nodes.FromImport),
)


class TemplateFault(ValueError):
    """A template cannot be read or filled; the message says why."""


def fill(value: Json, names: Mapping[str, Any]) -> Json:
    """The value with every text in it, at any depth, filled in; keys stay as they are.

    A text that is one `{{ ... }}` giving something other than a text becomes that value.

    Raises:
        TemplateFault: with the path of the text in the value and the template's own words.
    """
    return _fill(value, names, "")


def _fill(value: Json, names: Mapping[str, Any], path: str) -> Json:
    if isinstance(value, dict):
        return {key: _fill(item, names, f"{path}.{key}" if path else str(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [_fill(item, names, f"{path}[{index}]") for index, item in enumerate(value)]
    if not isinstance(value, str) or not any(mark in value for mark in ("{{", "{%", "{#")):
        return value
    try:
        return _text(value, names)
    except (TemplateError, TemplateFault, RecursionError, *_EVALUATION) as error:
        words = "nested too deeply" if isinstance(error, RecursionError) else f"{error}" or type(error).__name__
        raise TemplateFault(f"{path}: {words[:500]}" if path else words[:500]) from None


#: What expressions raise when filled with data of another shape than expected.
_EVALUATION = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError)


def _text(source: str, names: Mapping[str, Any]) -> Json:
    expression = _single(source.strip())
    if expression is not None:
        value = _json(expression(**names))
        if not isinstance(value, str):
            return value
    return _bounded(_template(source).generate(**names))


def _bounded(parts: Iterable[str]) -> str:
    pieces, size = [], 0
    for part in parts:
        size += len(part)
        if size > MAX_RESULT:
            raise TemplateFault(f"gives more than {MAX_RESULT:,} characters")
        pieces.append(part)
    return "".join(pieces)


def _json(value: Any) -> Json:
    """The value of an expression as JSON; generators of filters become lists."""
    if isinstance(value, Undefined):
        value._fail_with_undefined_error()
    if isinstance(value, float) and not math.isfinite(value):
        raise TemplateFault("gives a number that is not finite")
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Mapping):
        return {str(key): _json(item) for key, item in value.items()}
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return [_json(item) for item in islice(value, MAX_RESULT)]
    raise TemplateFault(f"gives a {type(value).__name__}, which is no JSON value")


class _Sandbox(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset(["*", "**", "%"])

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Keys before methods, so that `output.items` is the field a skill answered."""
        if isinstance(obj, Mapping) and attribute in obj:
            return obj[attribute]
        return super().getattr(obj, attribute)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        return super().is_safe_attribute(obj, attr, value) and (attr in METHODS or not callable(value))

    def wrap_str_format(self, value: Any) -> None:
        """No formatting: a width in a format text can ask for any amount of memory."""

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "%" and isinstance(left, str):
            raise SecurityError("formatting with % is not offered; use ~ or the filter number")
        if operator == "*" and isinstance(left, int) and not isinstance(right, int):
            left, right = right, left
        if isinstance(right, int) and _too_large(operator, left, right):
            raise SecurityError(f"{operator} gives too large a value")
        return super().call_binop(context, operator, left, right)


def _too_large(operator: str, left: Any, right: int) -> bool:
    if isinstance(left, int):
        bits = left.bit_length() * abs(right) if operator == "**" else left.bit_length() + right.bit_length()
        return operator != "%" and bits > MAX_BITS
    return operator == "*" and isinstance(left, (str, list, tuple)) and len(left) * right > MAX_RESULT


def number(value: Any, digits: int = 0) -> str:
    """A number, or a text that is one, with exactly so many decimals, halves rounded away from zero."""
    if isinstance(value, Undefined):
        value._fail_with_undefined_error()
    if isinstance(value, bool) or not 0 <= digits <= 50:
        raise TemplateFault("number: needs a number and 0 to 50 digits")
    try:
        exact = Decimal(str(value).strip())
        rounded = exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
        return f"{rounded + 0:f}"  # + 0: no minus before a zero
    except InvalidOperation:
        raise TemplateFault(f"number: {str(value)[:80]!r} is no number") from None


def tojson(value: Any, indent: int | None = None) -> str:
    """Plain JSON; Jinja's own filter writes it for HTML."""
    plain = _json(value)
    if indent is None:
        return compact(plain)
    return json.dumps(plain, ensure_ascii=False, indent=min(max(indent, 0), 8), allow_nan=False)


def _span(*bounds: int) -> range:
    found = range(*bounds)
    if len(found) > MAX_RANGE:
        raise SecurityError(f"range gives at most {MAX_RANGE:,} numbers")
    return found


def _join(value: Iterable[Any], separator: str = "", attribute: str | None = None) -> str:
    items = [item[attribute] if attribute else item for item in value]
    return _bounded(part for index, item in enumerate(items) for part in ((separator if index else ""), str(item)))


def _replace(text: Any, old: str, new: str) -> str:
    plain = str(text)
    if len(plain) + plain.count(old) * len(new) > MAX_RESULT:
        raise SecurityError(f"replace gives more than {MAX_RESULT:,} characters")
    return plain.replace(old, new)


@lru_cache(maxsize=1)
def _environment() -> _Sandbox:
    sandbox = _Sandbox(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True, cache_size=0)
    own: dict[str, Callable[..., Any]] = {"number": number, "tojson": tojson, "join": _join, "replace": _replace}
    sandbox.filters = {name: sandbox.filters[name] for name in FILTERS} | own
    sandbox.globals = {"range": _span}
    return sandbox


@lru_cache(maxsize=512)
def _template(source: str) -> Template:
    _judge(source)
    return _environment().from_string(source)


@lru_cache(maxsize=512)
def _single(source: str) -> Callable[..., Any] | None:
    """The expression when the source is one `{{ ... }}` and nothing else."""
    tree = _judge(source)
    if len(tree.body) != 1 or not isinstance(tree.body[0], nodes.Output):
        return None
    parts = tree.body[0].nodes
    if len(parts) != 1 or isinstance(parts[0], nodes.TemplateData) or not source.startswith("{{"):
        return None
    inside = source.removeprefix("{{").removesuffix("}}").strip("+-")
    return _environment().compile_expression(inside, undefined_to_none=False)


def mistake(source: str) -> str | None:
    """Why a text cannot be a template here, in words; None when it can. Nothing is evaluated."""
    try:
        tree = _judge(source)
    except TemplateSyntaxError as error:
        return f"{error.message} (line {error.lineno})"
    except RecursionError:
        return "nested too deeply"
    except TemplateFault as error:
        return str(error)
    filters = _environment().filters
    for one in tree.find_all(nodes.Filter):
        if one.name not in filters:
            close = get_close_matches(one.name, filters, n=1)
            hint = f'; did you mean "{close[0]}"?' if close else ""
            return f'there is no filter "{one.name}"{hint} (line {one.lineno})'
    return None


def _judge(source: str) -> nodes.Template:
    if len(source) > MAX_SOURCE:
        raise TemplateFault(f"a template has at most {MAX_SOURCE:,} characters")
    tree = _environment().parse(source)
    for kind in REFUSED:
        if tree.find(kind) is not None:
            raise TemplateFault(f"{kind.__name__.lower()} is not offered here; expressions, if and for are")
    if any(loop.recursive for loop in tree.find_all(nodes.For)):
        raise TemplateFault("recursive is not offered here")
    if _loops(tree) > MAX_LOOPS:
        raise TemplateFault(f"at most {MAX_LOOPS} loops stand inside each other")
    return tree


def _loops(node: nodes.Node) -> int:
    deepest = max((_loops(child) for child in node.iter_child_nodes()), default=0)
    return deepest + isinstance(node, nodes.For)
