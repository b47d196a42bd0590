import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.sandbox.limits import Limits
from workers.sandbox.supervise import Kept, Report

LIMITS = Limits(out_files=3, out_file=100)


def line(**said: object) -> bytes:
    return json.dumps(said).encode() + b"\n"


@given(st.lists(st.binary(max_size=50)), st.integers(0, 100))
def test_a_stream_keeps_its_beginning(parts: list[bytes], most: int) -> None:
    kept, whole = Kept(most), b"".join(parts)
    for part in parts:
        kept.add(part)
    assert bytes(kept.data) == whole[:most]
    assert kept.truncated == (len(whole) > most)


@given(st.binary(max_size=100), st.integers(1, 40))
def test_a_report_reads_the_same_in_any_pieces(content: bytes, size: int) -> None:
    # Given a whole report whose file may hold line breaks and braces
    whole = b"".join(
        [
            line(started=True),
            line(ended=0, reason=""),
            line(file="a/b", size=len(content), whyNot=""),
            content,
            line(file="c", size=0, whyNot="no regular file"),
        ]
    )
    # When it comes in pieces
    report = Report(LIMITS)
    for at in range(0, len(whole), size):
        report.add(whole[at : at + size])
    # Then nothing of it is lost
    assert report.started_at is not None and report.ended_at is not None
    assert report.files == [("a/b", content)]
    assert report.left == ["out/c was left behind: no regular file"]


@pytest.mark.parametrize(
    "said",
    [
        line(file="a", size=101, whyNot=""),
        line(file="a", size=-1, whyNot=""),
        b"x" * 100_000,
        b"no json\n",
        line(file="a", size=0, whyNot="") * 11,
    ],
)
def test_a_report_that_is_none_is_refused(said: bytes) -> None:
    with pytest.raises(ValueError):
        Report(LIMITS).add(said)
