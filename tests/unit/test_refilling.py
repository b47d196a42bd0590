"""What follows claimed wake-ups is seen to apart from the claims."""

import threading
from collections.abc import Sequence

from tests.support import eventually
from workers.refilling import TOGETHER, Refiller


class Looks:
    """Each look at projects; the first waits until it may go on."""

    def __init__(self, *, broken: bool = False) -> None:
        self.seen: list[list[str]] = []
        self.go_on = threading.Event()
        self._broken = broken

    def __call__(self, project_ids: Sequence[str]) -> None:
        self.seen.append(list(project_ids))
        self.go_on.wait(10)
        if self._broken and len(self.seen) == 1:
            raise RuntimeError("the database is away")


def test_what_is_asked_for_while_a_look_is_under_way_is_looked_at_together_and_once() -> None:
    looks = Looks()
    refiller = Refiller(looks)
    refiller.ask(["b"])
    eventually(lambda: looks.seen == [["b"]], 5)

    refiller.ask(["c", "a"])
    refiller.ask(["a", "b"])
    looks.go_on.set()

    eventually(lambda: looks.seen == [["b"], ["a", "b", "c"]], 5)


def test_no_look_locks_more_projects_than_it_may() -> None:
    looks = Looks()
    looks.go_on.set()
    many = [f"p{n:02}" for n in range(TOGETHER + 1)]

    Refiller(looks).ask(many)

    eventually(lambda: [one for some in looks.seen for one in some] == many, 5)
    assert max(map(len, looks.seen)) == TOGETHER


def test_a_look_that_fails_is_the_clocks_and_the_next_is_made_all_the_same() -> None:
    looks = Looks(broken=True)
    refiller = Refiller(looks)
    looks.go_on.set()
    refiller.ask(["a"])
    eventually(lambda: looks.seen == [["a"]], 5)

    refiller.ask(["b"])

    eventually(lambda: looks.seen == [["a"], ["b"]], 5)
