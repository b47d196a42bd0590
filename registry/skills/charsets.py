"""Names of charsets as strangers write them: on pages, in headers, in mails.

Python takes codecs under the same names that are no charset at all, and some of them need quadratic time: a label is
looked up in a list of what people write texts in, never simply tried.
"""

import codecs
import re
from typing import Final

_CHARSET: Final = re.compile(
    r"(us-?)?ascii|utf[-_]?(7|8|16|32)([-_]?[bl]e)?|(iso[-_]?8859[-_]?\d{1,2}(-[ei])?|latin[-_]?\d{1,2})"
    r"|(windows|cp|ibm)[-_]?\d{3,5}|koi8[-_]?[rtu]|gb(k|2312|18030)|x-gbk|big5([-_]?hkscs)?|hz(-gb-2312)?"
    r"|euc[-_]?(jp|kr|cn|tw)|(shift[-_]?|s)jis|iso[-_]?2022[-_]?(jp|kr)([-_]?\d)?|ks_c_5601-1987|tis[-_]?620"
    r"|mac[-_]?(roman|cyrillic|greek|latin2)|macintosh|viscii|johab",
    re.IGNORECASE,
)
_WITHOUT_CODEC: Final = {"ks_c_5601-1987": "cp949", "macintosh": "mac_roman", "gb2312": "gb18030", "x-gbk": "gbk"}


def codec_of(label: str) -> str | None:
    """The name under which Python reads a charset; None: the label names none that is known here."""
    named = label.strip().lower()
    if not _CHARSET.fullmatch(named):
        return None
    try:
        return codecs.lookup(_WITHOUT_CODEC.get(named, named)).name
    except LookupError:
        return None


__all__ = ["codec_of"]
