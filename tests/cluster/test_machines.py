"""The machines of these tests share nothing but an object store, and leave nothing behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.cluster.machine import ROOT
from tests.fixtures.machines import PREFIX, remove_leftovers

pytestmark = [pytest.mark.ray, pytest.mark.slow]

WRITE = """
import os, sys, tempfile
from pathlib import Path
for folder in (Path.home(), os.environ["PEG_CACHE_DIR"], tempfile.gettempdir(), *sys.argv[1:]):
    Path(folder).mkdir(parents=True, exist_ok=True)
    file = Path(folder, "mine")
    file.write_text("here")
    print(file)
"""
READ = "import os, sys; print(sum(os.path.exists(path) for path in sys.argv[1:]))"
PUT = """
import sys
import pyarrow.fs
files, path = pyarrow.fs.FileSystem.from_uri(sys.argv[1])
with files.open_output_stream(f"{path}/{sys.argv[2]}") as sink:
    sink.write(b"from " + sys.argv[2].encode())
"""
NODES = """
import os, socket, sys
import ray
ray.init("auto", log_to_driver=False, logging_level="ERROR")
where = ray.remote(lambda: (socket.gethostname(), os.path.exists(sys.argv[1])))
for node in ray.nodes():
    if node["Alive"]:
        address = node["NodeManagerAddress"]
        place = {f"node:{address}": 0.001}
        print(address, *ray.get(where.options(num_cpus=0, resources=place).remote()))
"""
MAKER = """
import sys, time
from tests.fixtures.machines import Network
network = Network(isolated=sys.argv[1] == "True").__enter__()
started = network.add().popen("sleep", "1000")
print(network.name, started.process.pid, flush=True)
time.sleep(1000)
"""


def test_a_file_of_one_machine_is_on_no_other(isolated, ray_machines):
    first, second = ray_machines.workers[:2]
    files = first.python(WRITE, "/dev/shm", "/tmp/deep/folder").split()
    assert len(files) == 5
    assert first.python(READ, *files).strip() == "5"
    assert second.python(READ, *files).strip() == "0"
    assert not any(os.path.exists(file) for file in files)


def test_each_machine_reaches_the_object_store(ray_machines, objects, client):
    bucket = objects.new_bucket()
    for machine in (*ray_machines.machines, client):
        machine.python(PUT, objects.url(bucket), machine.name, env=ray_machines.environment)
    names = {machine.name for machine in (*ray_machines.machines, client)}
    assert objects.objects(bucket).keys() == names


def test_ray_runs_a_task_on_each_machine(network, ray_machines):
    head = ray_machines.head
    lines = [
        line.split()
        for line in head.python(
            NODES, head.inside / "home", env=ray_machines.environment
        ).splitlines()
    ]
    assert sorted(line[0] for line in lines) == sorted(m.address for m in ray_machines.machines)
    if network.isolated:
        assert {line[1] for line in lines} == {m.name for m in ray_machines.machines}


def test_a_machine_without_power_is_silent_and_empty(isolated, network, client):
    machine = network.add()
    server = machine.popen(sys.executable, "-m", "http.server", "--bind", machine.address, "8000")
    connect = f"import socket; socket.create_connection(('{machine.address}', 8000), timeout=1)"
    while client.popen(sys.executable, "-c", connect).wait() != 0:
        assert server.poll() is None, server.output
    assert sum(machine.bytes_moved()) > 0
    machine.popen("sh", "-c", "setsid sleep 1000 & sleep 1000")
    machine.kill()
    assert machine.processes() == []
    assert server.poll() == -signal.SIGKILL
    assert client.popen(sys.executable, "-c", connect).wait() != 0


def test_nothing_of_a_killed_maker_is_left_after_the_next_start(network):
    maker = subprocess.Popen(
        [sys.executable, "-c", MAKER, str(network.isolated)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert maker.stdout
    name, orphan = maker.stdout.readline().split()
    assert name == f"{PREFIX}{maker.pid}"
    folder = Path("/tmp", name)
    assert folder.exists()
    maker.kill()
    maker.wait()
    remove_leftovers()
    while psutil.pid_exists(int(orphan)):  # the kernel ends it, which takes a moment
        time.sleep(0.01)
    assert not folder.exists()
    assert not Path("/sys/class/net", name).exists()
    assert Path("/tmp", network.name).exists(), "the maker of this one is alive"
