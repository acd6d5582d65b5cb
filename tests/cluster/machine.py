"""One machine: namespaces of its own, or where there are none a folder of its own on loopback.

A machine's network, mounts, host name, process numbers and shared memory are its own. Its first
process ends with the pipe that its maker holds, and the kernel then ends all the others.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[2]
TEMPORARY = Path("/tmp")
MOTO_PYTHON = os.environ.get("PEG_MOTO_PYTHON", sys.executable)
# Paths that every machine sees: the repository and what runs it.
INSTALLATION = {ROOT, *map(Path, (sys.prefix, sys.base_prefix)), Path(MOTO_PYTHON).parent.parent}
NAMESPACES = ("--mount", "--net", "--uts", "--ipc", "--pid", "--fork", "--mount-proc")
# The first process of a machine: it reaps orphans, and ends when its maker does.
FIRST_PROCESS = """
import signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print("ready", flush=True)
sys.stdin.read()
"""
# Settings of the tests' own process that must not reach a machine.
OWN_SETTINGS = ("RAY_", "PEG_", "PYTEST_", "COV_", "NUMBA_CACHE", "XDG_", "PYTHONPATH")


class Started:
    """A command on a machine that was started, in a process group of its own."""

    def __init__(self, command: list[str], environment: dict[str, str], output: Path) -> None:
        self._output = output
        with output.open("w") as sink:
            self.process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        """Of both streams."""
        return self._output.read_text(errors="replace")

    def poll(self) -> int | None:
        return self.process.poll()

    def wait(self, timeout: float = 500) -> int:
        """The exit code; a command that takes longer is killed."""
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"no end after {timeout} s:\n{self.output}") from None

    def kill(self) -> None:
        """End its process group at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, 9)
        self.process.wait()


class Machine:
    """A folder on loopback: the plainest form, which keeps apart what follows its environment.

    Args:
        name: Its host name, where it has one.
        address: Where others reach it.
        disk: Its own folder, as the maker sees it.
    """

    isolated = False

    def __init__(self, name: str, address: str, disk: Path) -> None:
        self.name, self.address, self.disk = name, address, disk
        self.inside = disk  # the same folder, as the machine sees it
        self.alive = True
        self._started: list[Started] = []
        for folder in ("home", "outputs"):
            (disk / folder).mkdir(parents=True)

    @property
    def environment(self) -> dict[str, str]:
        kept = {n: v for n, v in os.environ.items() if not n.startswith(OWN_SETTINGS)}
        return {
            **kept,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "HOME": str(self.inside / "home"),
            "TMPDIR": str(self.inside),
            "PEG_CACHE_DIR": str(self.inside / "cache"),
            "RAY_TMPDIR": str(self.inside),
            "RAY_USAGE_STATS_ENABLED": "0",
        }

    def place(self, name: str, content: bytes) -> Path:
        """Write a file to the home folder; returns its path on the machine."""
        file = self.disk / "home" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        return self.inside / "home" / name

    def popen(self, *command: object, env: Mapping[str, str] | None = None) -> Started:
        """Start a command in the home folder."""
        environment = {**self.environment, **(env or {})}
        output = self.disk / "outputs" / f"{len(self._started)}.txt"
        started = Started(self._entered([str(item) for item in command]), environment, output)
        self._started.append(started)
        return started

    def run(
        self, *command: object, env: Mapping[str, str] | None = None, timeout: float = 500
    ) -> str:
        """What a command prints; it must succeed."""
        started = self.popen(*command, env=env)
        code = started.wait(timeout)
        assert code == 0, f"exit code {code} on {self.name}:\n{started.output}"
        return started.output

    def python(self, code: str, *arguments: object, env: Mapping[str, str] | None = None) -> str:
        """What a piece of Python prints; its arguments are in `sys.argv`."""
        return self.run(sys.executable, "-c", code, *arguments, env=env)

    def processes(self) -> list[psutil.Process]:
        """All that are alive."""
        found = []
        for started in self._started:
            with contextlib.suppress(psutil.NoSuchProcess):
                root = psutil.Process(started.process.pid)
                found += [root, *root.children(recursive=True)]
        return found

    def kill(self) -> None:
        """Cut the power: all its processes end at once, and nobody reaches it any more."""
        self.alive = False
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        for started in self._started:
            started.kill()

    def bytes_moved(self) -> tuple[int, int]:
        """Received and sent."""
        pytest.skip("loopback does not count the bytes of a machine")

    def _entered(self, command: list[str]) -> list[str]:
        return ["sh", "-c", 'cd "$0" && exec "$@"', str(self.inside / "home"), *command]


class IsolatedMachine(Machine):
    """Namespaces: no file, no process and no port of another machine is seen from here.

    Args:
        link: Name of its cable's outer end.
        bridge: Where the cable is plugged in.
        hosts: File with the names of all machines.
    """

    isolated = True

    def __init__(
        self, name: str, address: str, disk: Path, *, link: str, bridge: str, hosts: Path
    ) -> None:
        super().__init__(name, address, disk)
        self.inside, self._link = TEMPORARY, link
        complaints_file = disk / "outputs" / "setting-up.txt"
        with complaints_file.open("w") as complaints:
            self._holder = subprocess.Popen(
                ["unshare", *NAMESPACES, "--propagation", "private",
                 "sh", "-ec", _setting_up(name, disk, hosts)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints,
                start_new_session=True,
            )  # fmt: skip
        assert self._holder.stdout
        if self._holder.stdout.readline() != b"ready\n":
            self._holder.wait()
            raise OSError(f"no namespaces for {name}: {complaints_file.read_text()}")
        [first] = psutil.Process(self._holder.pid).children()
        self._first = first.pid
        self._namespace = os.readlink(f"/proc/{self._first}/ns/pid")
        run_ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", self._first)
        run_ip("link", "set", link, "master", bridge, "up")
        inner = ["nsenter", "--target", str(self._first), "--net", "ip"]
        for more in (f"addr add {address}/24 dev eth0", "link set eth0 up", "link set lo up"):
            subprocess.run([*inner, *more.split()], check=True)

    def processes(self) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(OSError, psutil.NoSuchProcess):
                if os.readlink(f"/proc/{process.pid}/ns/pid") == self._namespace:
                    found.append(process)
        return found

    def kill(self) -> None:
        if not self.alive:
            return
        self.alive = False
        with contextlib.suppress(subprocess.CalledProcessError):  # it goes with the machine
            # first the cable: a machine without power says no good-bye
            run_ip("link", "set", self._link, "down")
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._first, 9)
        self._holder.wait()
        for started in self._started:
            started.kill()
        with contextlib.suppress(subprocess.CalledProcessError):
            run_ip("link", "delete", self._link)

    def bytes_moved(self) -> tuple[int, int]:
        counters = Path(f"/sys/class/net/{self._link}/statistics")
        # what the outer end sends is received inside
        sent, received = (int((counters / f"{way}_bytes").read_text()) for way in ("rx", "tx"))
        return received, sent

    def _entered(self, command: list[str]) -> list[str]:
        return ["nsenter", "--target", str(self._first), "--all", *super()._entered(command)]


def _setting_up(name: str, disk: Path, hosts: Path) -> str:
    """The shell script that runs first on a machine: what is below /tmp becomes its own."""
    lines = [f"mount --bind {hosts} /etc/hosts", "mount -t tmpfs tmpfs /dev/shm"]
    for path in sorted(INSTALLATION):
        if path.is_relative_to(TEMPORARY):  # a clone there must stay readable
            target = disk / path.relative_to(TEMPORARY)
            lines += [f"mkdir -p {target}", f"mount --rbind {path} {target}"]
    hidden = {TEMPORARY, Path(tempfile.gettempdir())}
    lines += [f"mount --rbind {disk} {path}" for path in sorted(hidden, reverse=True)]
    return "\n".join([*lines, f"hostname {name}", f"exec {sys.executable} -ISc '{FIRST_PROCESS}'"])


def run_ip(*arguments: object) -> str:
    """What `ip` prints."""
    command = ["ip", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
