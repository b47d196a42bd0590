"""Hosts of a test: each with a network, an address, a name, process numbers and folders of its own, on one switch.

They are namespaces of this machine, made with `unshare` and joined with `ip`. Each lives as long as one process that
holds it, and that process dies with the test: nothing has to be cleaned up, whatever happens.

Inside a host, `HOME` is its own disk and `VOLUME` the shared volume, where it has one. Nothing else that a test writes
is to be seen there.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from orchestrator.stack.processes import Process
from tests.support import eventually

ROOT = Path(__file__).parents[2]
HOME = Path("/mnt/home")
VOLUME = Path("/mnt/volume")

#: What a host does before anything runs in it. $1 its disk, $2 the volume or nothing, $3... what of /tmp it sees.
_MOUNT = """
disk=$1 volume=$2; shift 2
mount -t tmpfs host /mnt
mkdir /mnt/home && mount --bind "$disk" /mnt/home
[ -z "$volume" ] || { mkdir /mnt/volume && mount --bind "$volume" /mnt/volume; }
n=0; for seen; do n=$((n + 1)); mkdir -p "/mnt/seen/$n"; mount --bind "$seen" "/mnt/seen/$n"; done
mount -t tmpfs tmp /tmp
n=0; for seen; do n=$((n + 1)); mkdir -p "$seen"; mount --bind "/mnt/seen/$n" "$seen"; done
ip link set lo up
touch /mnt/home/.up
exec sleep infinity
"""


class NoNamespaces(Exception):
    """This machine, or this user, cannot make hosts; the message says why."""


def needed() -> None:
    """
    Raises:
        NoNamespaces: hosts cannot be made here.
    """
    missing = [program for program in ("ip", "unshare", "nsenter", "setpriv") if shutil.which(program) is None]
    if missing:
        raise NoNamespaces(f"no {', '.join(missing)} here: apt-get install iproute2 util-linux")
    if os.geteuid() != 0:
        raise NoNamespaces("only root makes network and mount namespaces: sudo make test-hosts")
    trial = "mount -t tmpfs trial /mnt && ip link add trial type bridge && ip link add one type veth peer name two"
    tried = subprocess.run(
        ["unshare", "--net", "--mount", "--uts", "--pid", "--fork", "sh", "-c", trial], capture_output=True, text=True
    )
    if tried.returncode != 0:
        raise NoNamespaces(f"namespaces cannot be made here: {tried.stderr.strip()}")


class Switch:
    """What the cables of all hosts lead to; a network of its own, joined to no other."""

    def __init__(self) -> None:
        self._holder = Process(["unshare", "--net", "sleep", "infinity"])
        eventually(lambda: _name(self._holder.pid) == "sleep", 10)
        self.ip("link", "add", "switch", "type", "bridge")
        self.ip("link", "set", "switch", "up")

    def ip(self, *words: str) -> None:
        """`ip` in the switch."""
        subprocess.run(["nsenter", f"--net=/proc/{self._holder.pid}/ns/net", "ip", *words], check=True)

    def close(self) -> None:
        self._holder.kill()


class Host:
    """One machine.

    Args:
        switch: where its cable ends.
        name: its host name, up to eight letters.
        address: its IPv4 address.
        disk: the folder that is its own disk.
        volume: the shared volume; None: it is not mounted here.
        sees: further folders below /tmp that it may see.
    """

    def __init__(
        self, switch: Switch, name: str, address: str, disk: Path, volume: Path | None, sees: Sequence[Path] = ()
    ) -> None:
        self.name, self.address, self.disk, self._switch = name, address, disk, switch
        disk.mkdir(parents=True, exist_ok=True)
        (disk / ".up").unlink(missing_ok=True)
        spaces = ["--mount", "--net", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
        programs = [ROOT, Path(sys.prefix), Path(sys.base_prefix)]
        seen = [str(path) for path in dict.fromkeys([*programs, *sees]) if path.is_relative_to("/tmp")]
        words = ["sh", "-ec", f"hostname {name}\n{_MOUNT}", "host", str(disk), str(volume or ""), *seen]
        self._holder = Process(["unshare", *spaces, *words], log=disk / "host.log")
        eventually((disk / ".up").exists, 10)
        self._inner = psutil.Process(self._holder.pid).children()[0].pid
        switch.ip("link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns", str(self._inner))
        switch.ip("link", "set", f"to-{name}", "master", "switch")
        self.plug()
        subprocess.run(self.into("ip", "address", "add", f"{address}/24", "dev", "eth0"), check=True)
        subprocess.run(self.into("ip", "link", "set", "eth0", "up"), check=True)

    def into(self, *command: str) -> list[str]:
        """The command line that runs a command in this host."""
        return ["nsenter", f"--target={self._inner}", "--mount", "--net", "--uts", "--pid", *command]

    def run(self, *command: str, env: Mapping[str, str], seconds: float = 120) -> "subprocess.CompletedProcess[str]":
        """Runs a command to its end."""
        words = self.into(*command)
        return subprocess.run(words, env=dict(env), capture_output=True, text=True, timeout=seconds, cwd="/")

    def unplug(self) -> None:
        """Pulls its cable: no packet goes in or out, and nobody is told."""
        self._switch.ip("link", "set", f"to-{self.name}", "down")

    def plug(self) -> None:
        self._switch.ip("link", "set", f"to-{self.name}", "up")

    def off(self) -> None:
        """Ends everything that runs in it."""
        self._holder.kill()


class Service:
    """A process of a host."""

    def __init__(self, host: Host, command: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None) -> None:
        self.host, self.log = host, log
        self.process = Process(host.into(*command), log=log, env=env or os.environ)

    @property
    def output(self) -> str:
        """All it has printed."""
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""

    @property
    def running(self) -> bool:
        return self.process.running

    def signal(self, number: int) -> None:
        """Sends it a signal: the process we started waits outside for the one that is meant."""
        for child in psutil.Process(self.process.pid).children():
            child.send_signal(number)

    def ended(self, seconds: float) -> None:
        """Waits until it has left."""
        eventually(lambda: not self.process.running, seconds, 0.05)

    def kill(self) -> None:
        self.process.kill()


def _name(pid: int) -> str:
    try:
        return psutil.Process(pid).name()
    except psutil.NoSuchProcess:
        return ""
