"""Servers that a test may break: each is its own, and can be killed, emptied, frozen and started again."""

import os
import shutil
import signal
import socket
import tempfile
from pathlib import Path

from redis import Redis

from orchestrator.stack.processes import Process
from orchestrator.stack.redis_server import RedisServer
from tests.certificates import Certificates
from tests.guarded_redis import DEPLOY
from tests.services import ServiceMissing
from tests.support import eventually


class FragileRedis:
    """A Redis server that keeps nothing on disk."""

    def __init__(self, folder: Path) -> None:
        self._server = RedisServer(folder)
        assert self._server.take()
        self._process = self._server.start()

    @property
    def url(self) -> str:
        return self._server.url

    @property
    def client(self) -> Redis:
        return Redis.from_url(self.url.replace("redis+socket://", "unix://"), decode_responses=True)

    def kill(self) -> None:
        """Ends it without a word of warning; all it held is gone."""
        self._process.kill()

    def start(self) -> None:
        """Starts it again, empty."""
        self._process = self._server.start()

    def freeze(self) -> None:
        """It keeps its connections and answers nobody."""
        os.kill(self._process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self._process.pid, signal.SIGCONT)

    def close(self) -> None:
        self._process.kill()
        self._server.release()


class Rabbit:
    """A RabbitMQ node of its own on loopback, with a name server of its own."""

    def __init__(self, certificates: Certificates | None = None) -> None:
        """
        Args:
            certificates: it runs on `deploy/rabbitmq/rabbitmq.conf` with these, good for `localhost`.

        Raises:
            ServiceMissing: RabbitMQ is not installed.
        """
        found = sorted(Path("/usr/lib/rabbitmq/lib").glob("rabbitmq_server-*/sbin/rabbitmq-server"))
        epmd = shutil.which("epmd")
        if not found or epmd is None:
            raise ServiceMissing("the RabbitMQ tests need its server: apt-get install rabbitmq-server")
        self._folder = Path(tempfile.mkdtemp(prefix="officina-rabbit-"))
        self._port, distribution, names = _free_port(), _free_port(), _free_port()
        self._certificates = certificates
        self.url = f"amqp://guest:guest@127.0.0.1:{self._port}//"
        self._command = [str(found[-1])]
        self._environment = os.environ | {
            "HOME": str(self._folder),
            "ERL_EPMD_PORT": str(names),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"officina{self._port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self._port),
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "RABBITMQ_MNESIA_BASE": str(self._folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self._folder),
            "RABBITMQ_PID_FILE": str(self._folder / "pid"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self._folder / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(self._folder / "none"),
        }
        (self._folder / "plugins").write_text("[].")
        if certificates is not None:
            self._deploy(certificates)
        log = self._folder / "epmd.log"
        self._names = Process([epmd, "-port", str(names), "-address", "127.0.0.1"], log=log, env=self._environment)
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def _deploy(self, certificates: Certificates) -> None:
        """Writes the deployed configuration, and says nothing more of ports than it does."""
        written = (DEPLOY / "rabbitmq" / "rabbitmq.conf").read_text(encoding="utf-8")
        for there, here in {
            "listeners.ssl.default = 5671": f"listeners.ssl.1 = 127.0.0.1:{self._port}",
            "/etc/officina/rabbitmq.crt": str(certificates.chain),
            "/etc/officina/rabbitmq.key": str(certificates.chain),
            "/etc/officina/ca.crt": str(certificates.root),
        }.items():
            assert there in written, there
            written = written.replace(there, here)
        (self._folder / "rabbitmq.conf").write_text(written, encoding="utf-8")
        del self._environment["RABBITMQ_NODE_IP_ADDRESS"], self._environment["RABBITMQ_NODE_PORT"]
        self._environment["RABBITMQ_CONFIG_FILE"] = str(self._folder / "rabbitmq.conf")
        self.url = f"amqps://guest:guest@localhost:{self._port}//?ssl_ca_certs={certificates.root}"

    def start(self) -> None:
        self._process = Process(self._command, log=self._folder / "rabbit.log", env=self._environment)
        eventually(self._answers, 150, 0.2)

    def kill(self) -> None:
        """Ends it without a word of warning; queues and messages that are durable stay on disk."""
        self._process.kill()

    def close(self) -> None:
        self._process.kill()
        self._names.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def log(self) -> str:
        return "\n".join(p.read_text(errors="replace") for p in self._folder.glob("*.log"))

    def _answers(self) -> bool:
        """Whether it speaks AMQP: an open port alone is not enough."""
        assert self._process.running, f"RabbitMQ ended ({self._process.outcome}): {self.log()[-4000:]}"
        try:
            with self._connected() as talk:
                talk.sendall(b"AMQP\x00\x00\x09\x01")
                return talk.recv(1) == b"\x01"
        except OSError:
            return False

    def _connected(self) -> socket.socket:
        plain = socket.create_connection(("127.0.0.1", self._port), 1)
        if self._certificates is None:
            return plain
        return self._certificates.trusting().wrap_socket(plain, server_hostname="localhost")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])
