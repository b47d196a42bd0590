"""Mail of agents on real workers: it leaves after a yes, once, and what a dying worker left unclear is not repeated."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator import connections
from orchestrator.settings import Settings
from orchestrator.signals import answer
from tests import mail_servers
from tests.certificates import Certificates
from tests.mail_servers import PASSWORD, USER, SmtpServer
from tests.projects import Watched, start, task
from tests.support import eventually
from tests.workers import WorkerProcess

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS:UserWarning"),
]

MAIL = {"to": ["bob@example.com"], "subject": "Hello", "text": "How are you?"}
SCRIPT = {
    "tasks": {
        "a": [
            {"calls": [{"name": "email.send", "args": MAIL}]},
            {"say": "It is on its way."},
        ]
    }
}


@pytest.fixture
def office(certificates: Certificates, settings: Settings, redis_url: str) -> Settings:
    """A whole system on SQLite."""
    return settings.model_copy(update={"broker_url": redis_url})


@pytest.fixture
def work(office: Settings, tmp_path: Path, certificates: Certificates) -> Iterator[Callable[[], WorkerProcess]]:
    """Starts workers that trust the root of the tests."""
    running: list[WorkerProcess] = []

    def begin() -> WorkerProcess:
        log = tmp_path / f"worker-{len(running)}.log"
        changed = {"LIMITS__LEASE_S": "2", "LIMITS__RENEW_S": "0.5", "LIMITS__CLOCK_TICK_S": "0.2"}
        running.append(WorkerProcess(office, log, changed, more={"SSL_CERT_FILE": str(certificates.root)}))
        return running[-1].ready(40)

    yield begin
    for one in running:
        one.kill()


def connected(office: Settings, server: SmtpServer) -> None:
    smtp = {"host": "127.0.0.1", "port": server.port, "security": "tls"}
    account = {"kind": "email", "address": USER, "username": USER, "password": PASSWORD, "smtp": smtp}
    connections.save(office, office.owner, "mailbox", account)


def test_a_mail_leaves_after_a_yes_and_once(
    certificates: Certificates, office: Settings, work: Callable[[], WorkerProcess], tmp_path: Path
) -> None:
    with mail_servers.smtp(certificates) as server:
        connected(office, server)
        work()
        plan = [task("a", skills=["email.send"])]
        project = Watched(office, start(tmp_path / "p", office, plan, SCRIPT).project_id)

        asked = project.open_signal(30)
        assert asked.action["input"]["text"] == "How are you?"
        assert server.commands == [], "nothing leaves before the answer"
        answer(office, asked.id, option="Do it", by="ann")

        assert project.ended(40) == "completed"
        assert [envelope.rcpt_tos for envelope in server.taken] == [["bob@example.com"]]
        assert PASSWORD not in str([event.data for event in project.trace])


def test_a_mail_whose_worker_died_while_it_left_is_not_sent_again(
    certificates: Certificates, office: Settings, work: Callable[[], WorkerProcess], tmp_path: Path
) -> None:
    with mail_servers.smtp(certificates, hang_at="message") as server:
        connected(office, server)
        first = work()
        plan = [task("a", skills=["email.send"])]
        project = Watched(office, start(tmp_path / "p", office, plan, SCRIPT).project_id)
        answer(office, project.open_signal(30).id, option="Do it", by="ann")
        eventually(lambda: len(server.taken) == 1, 30)

        first.kill()
        work()

        again = project.open_signal(40)
        assert "nobody knows how that ended" in str(again.reason)
        answer(office, again.id, option="No", by="ann")
        project.ended(40)
        assert len(server.taken) == 1
