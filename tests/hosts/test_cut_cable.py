"""A cable that is pulled while a process waits for the database: nobody is told, and it must not wait for ever."""

import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import services
from tests.hosts import network
from tests.hosts.network import ROOT, Host, Service, Switch
from tests.hosts.servers import NetworkPostgres
from tests.support import eventually

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(300)]

SILENT_S = 6


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[tuple[Host, str]]:
    """A host beside one with PostgreSQL, and the address of that."""
    try:
        network.needed()
    except network.NoNamespaces as why:
        pytest.skip(str(why))
    postgres, switch, made = services.needed(NetworkPostgres), Switch(), list[Host]()
    try:
        made.append(Host(switch, "a", "10.78.0.1", tmp_path / "a", None, [postgres.folder]))
        postgres.open(made[0])
        made.append(Host(switch, "b", "10.78.0.2", tmp_path / "b", None))
        yield made[1], postgres.address("postgres")
    finally:
        for host in made:
            host.off()
        postgres.remove()
        switch.close()


def asking(host: Host, url: str, silent_s: float, log: Path) -> Service:
    """A process on the host that waits for rows which do not come."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.hosts.asking", url, str(silent_s)]
    made = Service(host, command, log=log, env=environment)
    eventually(lambda: "asked" in made.output or not made.running, 120)
    assert made.running, made.output
    return made


def test_who_waits_for_rows_when_the_cable_is_pulled_gives_up_in_time(hosts: tuple[Host, str], tmp_path: Path) -> None:
    host, url = hosts
    waits, forever = (asking(host, url, silent, tmp_path / f"{silent}.log") for silent in (SILENT_S, 0))
    time.sleep(1)  # both have sent their question

    host.unplug()
    cut = time.monotonic()
    waits.ended(5 * SILENT_S)

    took = time.monotonic() - cut
    assert re.search(r"unavailable after [\d.]+ s", waits.output), waits.output
    assert took < 2 * SILENT_S + 3, "probes begin after half of the time, and the last is waited for"
    assert forever.running, "without the setting it would wait on: what ended the other is the setting"
    forever.kill()
