"""Undoing the compression of an answer in bounded pieces: a kilobyte that unfolds to a gigabyte costs what is kept.

The guard asks for gzip or deflate only; whoever sends another coding all the same is refused.
"""

import zlib
from collections.abc import Iterable, Iterator
from typing import Final

PIECE: Final = 64 * 1024
ACCEPTED: Final = "gzip, deflate"
#: Codings that change nothing.
_PLAIN: Final = frozenset({"", "identity"})


class UnknownCoding(Exception):
    """The answer is compressed in a way nobody asked for; the message names it."""


class BrokenCoding(Exception):
    """The answer is not what its header says."""


def decoded(chunks: Iterable[bytes], coding: str) -> Iterator[bytes]:
    """The decoded body in pieces of at most `PIECE` bytes.

    Raises:
        UnknownCoding: the header names something else than one gzip or deflate.
        BrokenCoding: the bytes do not decode.
    """
    names = [name for name in (part.strip().lower() for part in coding.split(",")) if name not in _PLAIN]
    if not names:
        return iter(chunks)
    if names in (["gzip"], ["x-gzip"]):
        return _gzip(chunks)
    if names == ["deflate"]:
        return _deflate(chunks)
    raise UnknownCoding(", ".join(names)[:60])


def _gzip(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """One or several members; zeros behind the last one are padding."""
    engine = zlib.decompressobj(wbits=31)
    for chunk in chunks:
        rest = chunk
        while rest:
            if engine.eof:
                rest = rest.lstrip(b"\0")
                if not rest:
                    break
                engine = zlib.decompressobj(wbits=31)
            yield from _pieces(engine, rest)
            rest = engine.unused_data
    # A body that stops in the middle is given as far as it came; the connection says whether it broke.


def _deflate(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """With the zlib header the standard asks for, or bare as some servers send it."""
    engine = None
    for chunk in chunks:
        if not chunk:
            continue
        if engine is None:
            engine = zlib.decompressobj(wbits=15 if chunk[0] & 0x0F == 8 else -15)
        yield from _pieces(engine, chunk)


def _pieces(engine: "zlib._Decompress", data: bytes) -> Iterator[bytes]:
    try:
        while data and not engine.eof:
            piece = engine.decompress(data, PIECE)
            data = engine.unconsumed_tail
            yield piece
    except zlib.error as error:
        raise BrokenCoding(f"it does not decode: {error}") from None
