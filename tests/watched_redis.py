"""Two Redis servers and three Sentinels on the files of `deploy/redis`: TLS, and a named user for each part."""

import os
import signal
from pathlib import Path

from orchestrator.redis_clients import connect
from orchestrator.stack.processes import Process
from orchestrator.stack.redis_server import find_server, free_port
from tests.certificates import issue
from tests.guarded_redis import PASSWORD, speaks_tls, write
from tests.support import eventually

HOST = "127.0.0.1"
#: Milliseconds after which a primary counts as gone; the file says five seconds.
DOWN_MS = 1_000


class WatchedRedis:
    """The servers and their Sentinels; which server is the primary is asked of these."""

    def __init__(self, folder: Path) -> None:
        self._program = str(find_server().path)
        self._secure = speaks_tls(self._program)
        self._folder = folder
        self._certificates = issue(folder, "localhost", HOST)
        self._servers: dict[int, Process] = {}
        self._sentinels: dict[int, Process] = {}
        try:
            self._begin()
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """Officina's address of them."""
        hosts = ",".join(f"{HOST}:{port}" for port in self._sentinels)
        asked = f"master=officina&sentinel_username=officina&sentinel_password={PASSWORD}"
        tls = f"&ssl_ca_certs={self._certificates.root}" if self._secure else ""
        return f"sentinel{'s' if self._secure else ''}://officina:{PASSWORD}@{hosts}/0?{asked}{tls}"

    @property
    def primary(self) -> int:
        """The port of the server that a client finds."""
        with connect(self.url, socket_timeout=2) as client:
            client.ping()
            return int(client.connection_pool.master_address[1])  # type: ignore[attr-defined]

    def kill(self, port: int) -> None:
        """Ends a server without a word of warning."""
        self._servers.pop(port).kill()

    def freeze(self, port: int) -> None:
        """A server keeps its connections and answers nobody."""
        os.kill(self._servers[port].pid, signal.SIGSTOP)

    def thaw(self, port: int) -> None:
        os.kill(self._servers[port].pid, signal.SIGCONT)

    def has_changed(self, before: int) -> bool:
        """Whether another server is the primary by now, and takes what is written."""
        try:
            return self.primary != before
        except Exception:
            return False

    def close(self) -> None:
        for process in (*self._sentinels.values(), *self._servers.values()):
            process.kill()

    def output(self) -> str:
        return "\n".join(
            f"--- {log.name}\n{log.read_text(errors='replace')[-3000:]}" for log in self._folder.glob("*.log")
        )

    def _begin(self) -> None:
        first, second = free_port(), free_port()
        self._serve(first, None)
        self._serve(second, first)
        eventually(lambda: self._said(f"{second}.log", "sync: Finished with success"), 20, 0.1)
        for _ in range(3):
            self._watch(free_port(), first)
        eventually(self._know_each_other, 30, 0.2)

    def _serve(self, port: int, primary: int | None) -> None:
        place = self._place(port)
        common = {"address": HOST, "port": port, "secure": self._secure}
        config = write(place, "redis.conf", self._certificates, **common)  # type: ignore[arg-type]
        more = write(place, "replication.conf", self._certificates, **common)  # type: ignore[arg-type]
        write(place, "users-watched.acl", self._certificates, **common).rename(place / "users.acl")  # type: ignore[arg-type]
        lines = [f"include {more}", f"dir {place}", *([f"replicaof {HOST} {primary}"] if primary else [])]
        with config.open("a") as file:
            file.write("\n".join(lines) + "\n")
        self._servers[port] = Process([self._program, str(config)], log=self._folder / f"{port}.log")
        eventually(lambda: self._said(f"{port}.log", "Ready to accept connections"), 20, 0.05)

    def _watch(self, port: int, primary: int) -> None:
        place = self._place(port)
        config = write(
            place,
            "sentinel.conf",
            self._certificates,
            address=HOST,
            port=port,
            secure=self._secure,
            more={"a.internal 6379": f"{HOST} {primary}", "officina 5000": f"officina {DOWN_MS}"},
        )
        command = [self._program, str(config), "--sentinel"]
        self._sentinels[port] = Process(command, log=self._folder / f"{port}.log")

    def _place(self, port: int) -> Path:
        place = self._folder / str(port)
        place.mkdir()
        return place

    def _know_each_other(self) -> bool:
        """Whether each Sentinel has met the two others and the replica, without which nobody is elected."""
        logs = [f"{port}.log" for port in self._sentinels]
        return all(self._said(log, "+slave") and self._said(log, "+sentinel ", 2) for log in logs)

    def _said(self, log: str, words: str, times: int = 1) -> bool:
        file = self._folder / log
        return file.exists() and file.read_text(errors="replace").count(words) >= times
