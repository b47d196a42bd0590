"""Texts that look like keys, tokens and passwords: what no memory should hold.

A net with a wide mesh: the forms that providers give their keys, and words that announce a secret and are followed by
one. It lets ordinary prose, file digests and ids pass; it is a help against carelessness, no guard against intent.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from registry.errors import Detail, SkillError

_FORMS: Final = re.compile(
    r"""
    -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----
    | \b(?:sk|pk|rk)[-_](?:live|test|proj|ant|or|svcacct)?[-_]?[A-Za-z0-9_-]{16,}
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b
    | \bgh[pousr]_[A-Za-z0-9]{20,} | \bgithub_pat_\w{20,} | \bglpat-[\w-]{16,}
    | \bxox[abeoprs]-[A-Za-z0-9-]{10,}
    | \bAIza[\w-]{30,} | \bya29\.[\w-]{20,}
    | \bhf_[A-Za-z0-9]{20,} | \bnpm_[A-Za-z0-9]{30,} | \bpypi-[\w-]{30,}
    | \bSG\.[\w-]{16,}\.[\w-]{16,}
    | \b\d{8,10}:[A-Za-z0-9_-]{35}\b
    | \beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*
    | \bBearer\s+[A-Za-z0-9._~+/-]{16,}
    | \b[a-z][a-z0-9+.-]*://[^\s/:@]+:[^\s/@]{3,}@
    """,
    re.VERBOSE,
)
#: A word that names a secret, and what is said to be it.
_NAMED: Final = re.compile(
    r"\b(?:password|passwd|passphrase|pass\s?word|pwd|secret|api[\s_-]?key|access[\s_-]?key|private[\s_-]?key|"
    r"(?:access|auth|refresh|bearer|api)[\s_-]?token|token|client[\s_-]?secret|pin[\s_-]?code|has[lł]o)"
    r"\s*(?:is\b|[:=]|=>)\s*[\"'`]?(?P<value>[^\s\"'`,;]{4,})",
    re.IGNORECASE,
)
_LONG: Final = re.compile(r"(?<![\w/+.-])[A-Za-z0-9+/_-]{32,}={0,2}(?![\w/.-])")
#: Bits a character of chance text has at least; words and paths have less.
_CHANCE_BITS: Final = 4.2


def looks_secret(text: str) -> bool:
    """Whether a text seems to hold a key, a token or a password."""
    if _FORMS.search(text):
        return True
    if any(_not_prose(match["value"]) for match in _NAMED.finditer(text)):
        return True
    return any(_by_chance(match[0]) for match in _LONG.finditer(text))


def refuse_secrets(texts: Iterable[tuple[str, str | None]], *, where: str) -> None:
    """Judges texts, each with the field it stands in, that are to be kept.

    Args:
        where: in what they would be kept.

    Raises:
        SkillError: `invalid_input`, naming the first field that seems to hold a secret.
    """
    for field, text in texts:
        if text is not None and looks_secret(text):
            words = f"looks like a key, a token or a password; keep no secrets in {where}"
            raise SkillError("invalid_input", f"{field}: {words}", details=[Detail(field, words)])


def _not_prose(value: str) -> bool:
    """A password, rather than the next word of a sentence ("the secret is patience")."""
    word = value.rstrip(".!?)")
    return (len(word) >= 6 and not word.isalpha()) or (len(word) >= 20)


def _by_chance(text: str) -> bool:
    kinds = sum(any(test(c) for c in text) for test in (str.islower, str.isupper, str.isdigit))
    if kinds < 3:
        return False
    counts = Counter(text)
    bits = -sum(n / len(text) * math.log2(n / len(text)) for n in counts.values())
    return bits >= _CHANCE_BITS


__all__ = ["looks_secret"]
