"""Taking secrets out of what people, logs and traces see: by the name they stand under, by their look, by their value.

What is masked stays masked however it is quoted; the stored call keeps its exact input elsewhere.
"""

import json
import re
import threading
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final
from urllib.parse import quote, quote_plus

from registry.base import Json
from registry.jsontext import compact

MASK: Final = "***"
#: Values shorter than this are not looked for: they would garble ordinary words.
MIN_VALUE: Final = 6
#: Values this process has opened and still takes out of texts.
MAX_VALUES: Final = 1_000

#: Words of a name (`X-Api-Token`, `dbPassword`) under which secrets stand, alone or two in a row.
_SECRET_WORDS: Final = frozenset(
    {
        *("auth", "authorization", "bearer", "cookie", "cookies", "credential", "credentials", "jwt", "signature"),
        *("apikey", "passphrase", "passwd", "password", "pwd", "secret", "secrets", "token"),
    }
)
_SECRET_PAIRS: Final = frozenset(
    {("api", "key"), ("access", "key"), ("private", "key"), ("signing", "key"), ("session", "id")}
)
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_IN_QUERY: Final = re.compile(r"(?<=[?&;])(?P<name>[\w.\[\]-]{1,60})=(?P<value>[^&#;\s\"'<>\\]+)")
#: Parameters that are secrets by convention, though their names are ordinary words.
_QUERY_NAMES: Final = frozenset({"key", "sig", "hmac"})
#: A name and its value within a text: JSON or a literal in quotes (themselves escaped, too), a header, an assignment.
_QUOTED: Final = re.compile(
    r"(?P<before>(?P<quote>\\{0,8}[\"'])(?P<name>[\w.-]{1,60})(?P=quote)\s{0,4}[:=]\s{0,4}(?P=quote))(?P<value>[^\"'\\]+)"
)
_ASSIGNED: Final = re.compile(
    r"(?P<before>(?<![\w?&;])(?P<name>[A-Za-z][\w-]{1,60})[ \t]{0,4}[:=][ \t]{0,4})"
    r"(?P<value>[^\s\"'<>,;&\\{}\[\]()]{8,})"
)
#: Every repetition is bounded: texts come from anyone, and no text may make this slow.
_LOOKS: Final = re.compile(
    r"\b(?:Bearer|Basic)\s{1,10}[\w.~+/=-]{8,}"
    r"|\b(?:sk|pk|rk)[-_][\w*.-]{8,}"
    r"|\b(?:ghp|gho|ghu|ghs|github_pat|glpat|xox[abprs])[-_][\w-]{10,}"
    r"|\bAKIA[0-9A-Z]{16}\b"
    r"|\beyJ[\w-]{10,500}\.[\w-]{10,2000}\.[\w-]{0,1000}"
    r"|-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|\Z)"
    r"|\bbot\d{6,20}:[\w-]{20,}",
    re.IGNORECASE,
)
_USER_INFO: Final = re.compile(r"(?P<scheme>\b[a-z][a-z0-9+.-]{0,20}://)[^/\s@?#\"']{1,500}@", re.IGNORECASE)
#: One of these, or two together, stands in every text that any of the patterns finds something in: most texts have
#: none, and are let go after a quick look.
_SIGNS: Final = (
    *("authorization", "bearer", "cookie", "credential", "jwt", "signature", "apikey", "passphrase", "passwd", "pwd"),
    *("password", "private key", "key=", "sig=", "hmac=", "sk-", "sk_", "pk-", "pk_", "rk-", "rk_"),
    *("ghp", "gho", "ghu", "ghs", "github_pat", "glpat", "xox", "akia", "eyj"),
)
#: Words that begin many others (author, tokens, secretary): looked at twice.
_WORD_SIGNS: Final = ("auth", "token", "secret", "basic", "bot")
_WORD_SIGN: Final = re.compile(
    r"(?:auth|Auth|AUTH|token|Token|TOKEN|secret|Secret|SECRET|secrets|Secrets|SECRETS)(?![a-z])"
    r"|[Bb][Aa][Ss][Ii][Cc]\s|[Bb][Oo][Tt]\d{6}"
)
_TWO_SIGNS: Final = (
    ("://", "@"),
    *(("api", "key"), ("access", "key"), ("private", "key"), ("signing", "key"), ("session", "id")),
)


def is_secret_name(name: str) -> bool:
    """Whether what stands under this name (a header, a field) is likely a secret."""
    return _is_secret(name[:200])


@lru_cache(maxsize=4096)
def _is_secret(name: str) -> bool:
    words = [word.lower() for word in _WORD.findall(name)]
    return not _SECRET_WORDS.isdisjoint(words) or not _SECRET_PAIRS.isdisjoint(pairwise(words))


class _Values:
    """Secrets this process has opened; the oldest are forgotten first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: The longest first: one secret may be the beginning of another. Replaced, never changed.
        self._known: tuple[str, ...] = ()
        self._in_order: list[str] = []

    def add(self, value: str) -> None:
        forms = {value, quote(value, safe=""), quote_plus(value), json.dumps(value, ensure_ascii=False)[1:-1]}
        with self._lock:
            new = [form for form in sorted(forms) if len(form) >= MIN_VALUE and form not in self._known]
            if new:
                self._in_order = [*self._in_order, *new][-MAX_VALUES:]
                self._known = tuple(sorted(self._in_order, key=len, reverse=True))

    def found(self, text: str) -> bool:
        return any(value in text for value in self._known)

    def replace(self, text: str) -> str:
        for value in self._known:
            if value in text:
                text = text.replace(value, MASK)
        return text


_values = _Values()


def remember(value: str) -> None:
    """Makes this value disappear from every text this process masks from now on."""
    _values.add(value)


def hide(value: Json) -> Json:
    """A JSON value without secrets this process has opened, otherwise as it is: answers may repeat what was sent."""
    return _hidden(value) if _values.found(compact(value)) else value


def _hidden(value: Json) -> Json:
    if isinstance(value, str):
        return _values.replace(value)
    if isinstance(value, list):
        return [_hidden(item) for item in value]
    if isinstance(value, dict):
        return {_values.replace(key): _hidden(item) for key, item in value.items()}
    return value


def hide_in_bytes(data: bytes) -> bytes:
    """The same for a body that may be anything."""
    text = data.decode("latin-1")
    shown = _values.replace(text)
    return data if shown == text else shown.encode("latin-1")


def reveals(text: str) -> bool:
    """Whether a text, JSON too, holds something that is not for everybody's eyes."""
    return _may_reveal(text) and mask_text(text) != text


def mask_text(text: str) -> str:
    """A text without known secrets, without what looks like one, without credentials in URLs."""
    if not _may_reveal(text):
        return text
    text = _values.replace(text)
    text = _USER_INFO.sub(rf"\g<scheme>{MASK}@", text)
    text = _IN_QUERY.sub(_parameter, text)
    text = _LOOKS.sub(MASK, text)
    text = _QUOTED.sub(_named, text)
    return _ASSIGNED.sub(_assigned, text)


def mask(value: Json) -> Json:
    """A JSON value fit to be shown; texts under names of secrets are replaced as a whole."""
    return _masked(value) if isinstance(value, str) or _may_reveal(compact(value)) else value


def mask_each(values: Sequence[dict[str, Json]]) -> list[dict[str, Json]]:
    """The same for each of several: a look at all of them together, which most often is enough, costs little more than
    at one."""
    if not _may_reveal("\n".join(map(compact, values))):
        return list(values)
    return [mask(value) for value in values]


def _masked(value: Json) -> Json:
    if isinstance(value, str):
        return mask_text(value)
    if isinstance(value, list):
        return [_masked(item) for item in value]
    if isinstance(value, dict):
        return {mask_text(key): _under(key, item) for key, item in value.items()}
    return value


def _under(name: str, value: Json) -> Json:
    if isinstance(value, str) and value and is_secret_name(name):
        return MASK
    if isinstance(value, list) and is_secret_name(name):  # a header that came twice
        return [MASK if isinstance(item, str) and item else _masked(item) for item in value]
    return _masked(value)


def _may_reveal(text: str) -> bool:
    low = text.lower()
    for sign in _SIGNS:  # no generator: every text that is written passes here, some of them twice
        if sign in low:
            return True
    for sign in _WORD_SIGNS:
        if sign in low and _WORD_SIGN.search(text) is not None:
            return True
    for one, other in _TWO_SIGNS:
        if one in low and other in low:
            return True
    return _values.found(text)


def _parameter(found: re.Match[str]) -> str:
    name = found["name"]
    return f"{name}={MASK}" if name.lower() in _QUERY_NAMES or is_secret_name(name) else found[0]


def _named(found: re.Match[str]) -> str:
    return found["before"] + MASK if is_secret_name(found["name"]) else found[0]


def _assigned(found: re.Match[str]) -> str:
    """Only values with a digit: `token: something` is a sentence."""
    secret = is_secret_name(found["name"]) and any(character.isdigit() for character in found["value"])
    return found["before"] + MASK if secret else found[0]


__all__ = ["MASK", "hide", "hide_in_bytes", "is_secret_name", "mask", "mask_each", "mask_text", "remember", "reveals"]
