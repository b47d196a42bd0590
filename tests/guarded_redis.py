"""A Redis server on the configuration and the users of `deploy/redis`: TLS, and a named user with a password."""

import hashlib
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator.stack.redis_server import find_server
from tests.certificates import Certificates, issue

DEPLOY = Path(__file__).parents[1] / "deploy"
PASSWORD = "a-password-of-the-tests"


@dataclass(frozen=True)
class Guarded:
    """The server, ready to be started; where the one at hand was built without TLS, it listens without."""

    command: list[str]
    port: int
    certificates: Certificates
    secure: bool

    def url(self, host: str, root: Path | None = None, user: str = f"officina:{PASSWORD}") -> str:
        """Its address, as Celery writes it.

        Args:
            root: where whoever uses it finds the root certificate; None: where it was written.
        """
        if not self.secure:
            return f"redis://{user}@{host}:{self.port}/0"
        more = f"ssl_cert_reqs=required&ssl_ca_certs={root or self.certificates.root}"
        return f"rediss://{user}@{host}:{self.port}/0?{more}"


def guarded(folder: Path, *names: str, address: str, port: int) -> Guarded:
    """Writes the configuration into a folder.

    Args:
        names: names and addresses its certificate is good for.
        address: where it listens.
    """
    certificates, program = issue(folder, *names), str(find_server().path)
    secure = speaks_tls(program)
    for name in ("redis.conf", "users.acl"):
        write(folder, name, certificates, address=address, port=port, secure=secure)
    return Guarded([program, str(folder / "redis.conf")], port, certificates, secure)


def write(
    folder: Path,
    name: str,
    certificates: Certificates,
    *,
    address: str,
    port: int,
    secure: bool,
    more: Mapping[str, str] | None = None,
) -> Path:
    """Writes a file of `deploy/redis` into a folder, with what a reader of it fills in.

    Args:
        more: what else stands for what.
    """
    written = (DEPLOY / "redis" / name).read_text(encoding="utf-8")
    for there, here in {
        **(more or {}),
        "port 0\ntls-port 6379": f"port 0\ntls-port {port}\nbind {address}",
        "port 0\ntls-port 26379": f"port 0\ntls-port {port}\nbind {address}",
        "/etc/officina/redis.crt": str(certificates.chain),
        "/etc/officina/redis.key": str(certificates.chain),
        "/etc/officina/ca.crt": str(certificates.root),
        "/etc/officina/users.acl": str(folder / "users.acl"),
        "REPLACE_WITH_SHA256_OF_THE_PASSWORD": hashlib.sha256(PASSWORD.encode()).hexdigest(),
        "REPLACE_WITH_THE_PASSWORD": PASSWORD,
    }.items():
        written = written.replace(there, here)
    if not secure:
        written = re.sub(r"^tls-(?!port).*$", "", written.replace("port 0\ntls-port", "port"), flags=re.M)
    (folder / name).write_text(written, encoding="utf-8")
    return folder / name


def speaks_tls(program: str) -> bool:
    said = subprocess.run(
        [program, "--port", "0", "--tls-port", "1"], capture_output=True, text=True, timeout=20
    ).stdout
    return "TLS support" not in said and "Missing implement" not in said
