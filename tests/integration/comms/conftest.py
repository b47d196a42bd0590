"""Mailboxes, bots and numbers that are connected to servers on loopback."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from orchestrator.workspaces.jail import JailedWorkspace
from registry.connections import C, EmailConnection, MailServer
from registry.skills.comms import SKILLS
from registry.skills.context import Authority, Caller, SkillContext
from registry.skills.registry import SkillRegistry, SkillResult
from tests import mail_servers
from tests.certificates import Certificates, issue
from tests.mail_servers import PASSWORD, USER, ImapServer, SmtpServer
from tests.services import ServiceMissing

REGISTRY = SkillRegistry(SKILLS)


@dataclass
class Desk:
    """An owner with connections and a workspace, whose calls were approved."""

    folder: Path
    connected: list[Any] = field(default_factory=list)
    net: Any = None

    def find(self, owner_id: str, kind: type[C], name: str | None = None) -> C | None:
        return next((one for one in self.connected if isinstance(one, kind)), None)

    def context(self, **changes: Any) -> SkillContext:
        made: dict[str, Any] = {
            "caller": Caller("run", run_id="run-1", call_id="call-1"),
            "workspace": JailedWorkspace(self.folder),
            "connections": self,
            "net": self.net,
        }
        return SkillContext(**(made | changes))

    def call(self, name: str, arguments: dict[str, Any], **changes: Any) -> SkillResult:
        return REGISTRY.invoke(name, arguments, self.context(**changes), Authority(None))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return Desk(folder)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return issue(tmp_path_factory.mktemp("mail-certificates"), "mail.example.com", "127.0.0.1")


@pytest.fixture
def trusted(certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process trusts the root of the tests, as an operator would have it trust one of their own."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.root))


@pytest.fixture
def smtp_server(certificates: Certificates, trusted: None) -> Iterator[Callable[..., SmtpServer]]:
    """Starts servers: `smtp_server(security="starttls", drop_at="MAIL")`."""
    running = []

    def start(**behaviour: Any) -> SmtpServer:
        running.append(mail_servers.smtp(certificates, **behaviour))
        return running[-1].__enter__()

    yield start
    for server in running:
        server.__exit__(None, None, None)


@pytest.fixture(scope="session")
def _dovecot(certificates: Certificates) -> Iterator[ImapServer]:
    server = mail_servers.dovecot(certificates)
    try:
        found = server.__enter__()
    except ServiceMissing as missing:  # in CI, too: it is no Python package, and not every machine has it to install
        pytest.skip(str(missing))
    yield found
    server.__exit__(None, None, None)


@pytest.fixture
def imap_server(_dovecot: ImapServer, trusted: None) -> ImapServer:
    """A real IMAP server with an empty mailbox."""
    _dovecot.empty()
    return _dovecot


def mailbox(*, smtp: SmtpServer | None = None, imap: ImapServer | None = None, **changes: Any) -> EmailConnection:
    """A connection to these servers."""
    values: dict[str, Any] = {"address": USER, "username": USER, "password": SecretStr(PASSWORD)}
    if smtp is not None:
        security = "tls" if smtp.security == "tls" else "starttls"
        values["smtp"] = MailServer(host="127.0.0.1", port=smtp.port, security=security)
    if imap is not None:
        values["imap"] = MailServer(host="127.0.0.1", port=imap.port)
    return EmailConnection(**(values | changes))
