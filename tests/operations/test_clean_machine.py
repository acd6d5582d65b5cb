"""A run leaves nothing outside its store, however it ends."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

pytestmark = [pytest.mark.ray, pytest.mark.slow]

# Matplotlib keeps the list of the machine's fonts.
CACHES = (".cache/matplotlib", ".config/matplotlib")
SECONDS = 120


class Machine:
    """A temporary folder and a home of its own."""

    def __init__(self, folder: Path, temporary: Path) -> None:
        self.home, self.temporary = folder / "home", temporary
        self.home.mkdir()
        kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        self._environment = {**kept, "TMPDIR": str(temporary), "HOME": str(self.home)}
        self._log = folder / "output.txt"

    def start(self, config: Path) -> subprocess.Popen:
        with self._log.open("w") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "pipeline", "run", str(config)],
                env=self._environment, stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip

    @property
    def output(self) -> str:
        return self._log.read_text()

    @property
    def left(self) -> list[str]:
        """What there is in both folders."""
        at_home = [str(path.relative_to(self.home)) for path in self.home.rglob("*")]
        unknown = [
            name
            for name in at_home
            if not any(cache.startswith(name) or name.startswith(cache) for cache in CACHES)
        ]
        return unknown + [path.name for path in self.temporary.iterdir()]


@pytest.fixture
def machine(tmp_path):
    with tempfile.TemporaryDirectory(prefix="t-", dir="/tmp") as temporary:
        yield Machine(tmp_path, Path(temporary))


def wait_until_ray_works(machine, process):
    deadline = time.monotonic() + SECONDS
    children = psutil.Process(process.pid)
    while not any("ray::" in child.name() for child in children.children(recursive=True)):
        assert process.poll() is None, machine.output
        assert time.monotonic() < deadline, machine.output
        time.sleep(0.05)


def end(machine, process, number) -> int:
    """The exit code; all processes that the run started have ended."""
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    code = process.wait(SECONDS)
    assert psutil.wait_procs(family, timeout=10)[1] == [], machine.output
    return code


def test_a_run_leaves_nothing_behind(machine, small_config):
    store = small_config.parent / "store"
    killed = machine.start(small_config)
    wait_until_ray_works(machine, killed)
    orphans = psutil.Process(killed.pid).children(recursive=True)
    killed.kill()
    killed.wait()
    [dead] = machine.left

    stopped = machine.start(small_config)
    wait_until_ray_works(machine, stopped)
    assert dead not in machine.left
    # Ray's agents would look for their dead cluster for a minute
    assert psutil.wait_procs(orphans, timeout=1)[1] == []
    assert end(machine, stopped, signal.SIGHUP) == 130, machine.output
    assert machine.left == []
    assert not (store / "lease.json").exists()

    assert machine.start(small_config).wait(SECONDS) == 0, machine.output
    assert machine.left == []
