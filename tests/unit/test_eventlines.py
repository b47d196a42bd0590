"""Lines of a stream of server-sent events, however it is cut into pieces."""

import pytest

from registry.eventlines import event_lines

STREAM = "data: a\u2028b\u2029c\u0085d\r\n\r\ndata: é\rid: 7\n\n: end".encode()
LINES = ["data: a\u2028b\u2029c\u0085d", "", "data: é", "id: 7", "", ": end"]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_only_lf_and_cr_end_a_line_wherever_the_pieces_end(size: int) -> None:
    pieces = [STREAM[at : at + size] for at in range(0, len(STREAM), size)]

    assert list(event_lines(pieces)) == LINES


def test_empty_pieces_and_broken_characters_stop_nothing() -> None:
    assert list(event_lines([b"", b"a\r", b"", b"\nb\xff", b"\n"])) == ["a", "b\ufffd"]


def test_a_line_is_told_as_soon_as_it_has_ended() -> None:
    lines = event_lines(iter([b"data: 1\r", b"never asked for"]))

    assert next(lines) == "data: 1"
