"""Fixtures that every room of tests uses."""

from __future__ import annotations

import contextlib
import json
import os
import random
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import networkx as nx
import numpy as np
import polars as pl
import psutil
import pyarrow.fs as pafs
import pytest
import ray
import torch
import yaml
from hypothesis import settings
from rich.console import Console

from peg_core.graph.graph_store import GraphStore
from pipeline.config import PipelineConfig
from pipeline.progress import RunDisplay
from pipeline.runner import run_pipeline
from workers.cluster import Cluster, ClusterSettings

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
# Before Ray starts, so that its workers inherit them: keys for the S3 server on loopback.
os.environ.setdefault("AWS_ACCESS_KEY_ID", "testing")
os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "testing")
os.environ.setdefault("AWS_EC2_METADATA_DISABLED", "true")
# Compiling kernels and noisy machines make deadlines meaningless.
settings.register_profile("peg", deadline=None, max_examples=50, derandomize=True)
settings.load_profile("peg")
# Small matrices: threads that wait for each other cost more than they bring.
torch.set_num_threads(1)


BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--virtual-time-budget=3000",
)


@pytest.fixture
def open_page(tmp_path: Path) -> Callable[[str], tuple[str, list[str]]]:
    """Opens a document in a real browser; gives its DOM and what it wrote to the console."""
    found = [path for name in BROWSERS if (path := shutil.which(name))]
    if not found:
        pytest.skip(f"no browser, looked for {', '.join(BROWSERS)}; install one to run this test")

    def open_in_browser(document: str) -> tuple[str, list[str]]:
        page = tmp_path / "page.html"
        page.write_text(document, encoding="utf-8")
        profile = f"--user-data-dir={tmp_path / 'profile'}"
        done = subprocess.run(
            [found[0], *BROWSER_FLAGS, profile, "--dump-dom", page.as_uri()],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]

    return open_in_browser


def from_networkx(graph: nx.Graph) -> GraphStore:
    ends = np.array(list(graph.edges()), dtype=np.int64).reshape(-1, 2)
    return GraphStore.from_edges(ends[:, 0], ends[:, 1], num_nodes=graph.number_of_nodes())


@pytest.fixture(scope="session")
def to_store() -> Callable[[nx.Graph], GraphStore]:
    """Turns a networkx graph with nodes 0 .. N-1 into a store."""
    return from_networkx


@pytest.fixture(scope="session")
def two_communities() -> GraphStore:
    """Sixty nodes, two blocks."""
    return from_networkx(nx.stochastic_block_model([30, 30], [[0.4, 0.05], [0.05, 0.4]], seed=3))


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """One local Ray for the whole test session: starting it takes seconds."""
    shared = Cluster(ClusterSettings(workers=2))
    shared.connect()
    yield shared
    shared.close()


@pytest.fixture(scope="session")
def ray_address(cluster: Cluster) -> str:
    """Where other processes join the session's Ray."""
    return str(ray.get_runtime_context().gcs_address)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The real graphs, or a skip that says how to get them."""
    folder = Path(os.environ.get("PEG_DATA_DIR", "../shared/data"))
    if not folder.exists():
        pytest.skip(f"no real graphs at {folder}: set PEG_DATA_DIR to a folder that has them")
    return folder


def write_small_inputs(folder: Path) -> None:
    """120 nodes in four communities with features; 600 candidates, one with an unknown node."""
    rng = np.random.default_rng(5)
    sizes = [30] * 4
    inside, outside = 0.35, 0.01
    chances = np.full((4, 4), outside) + np.eye(4) * (inside - outside)
    edges = np.array(nx.stochastic_block_model(sizes, chances, seed=5).edges())
    pl.DataFrame({"src": edges[:, 0], "dst": edges[:, 1]}).write_parquet(folder / "edges.parquet")
    block = np.repeat(np.arange(4), 30)
    x = (np.eye(4)[block] + rng.normal(size=(120, 4))).astype(np.float32)
    pl.DataFrame({"id": np.arange(120), "x": x.tolist()}).write_parquet(folder / "nodes.parquet")
    pairs = rng.integers(0, 120, size=(600, 2))
    pairs[17, 0] = 9_999
    pl.DataFrame(
        {"note": [f"row {i}" for i in range(600)], "src": pairs[:, 0], "dst": pairs[:, 1]}
    ).write_parquet(folder / "candidates.parquet", row_group_size=100)


def small_settings(folder: Path) -> dict[str, object]:
    return {
        "name": "small",
        "store": str(folder / "store"),
        "graph": {
            "edges": str(folder / "edges.parquet"),
            "nodes": str(folder / "nodes.parquet"),
            "features": "x",
        },
        "split": {"folds": 2, "seed": 1},
        "encodings": [{"kind": "le", "dimensions": 4}],
        "model": {"hidden": 8},
        "train": {"epochs": 6, "patience": 6},
        "evaluate": {"hits": [5]},
        "score": {"candidates": str(folder / "candidates.parquet"), "shard_rows": 200},
    }


@pytest.fixture
def small_config(tmp_path: Path) -> Path:
    """A configuration file with its data, small enough to run in a test."""
    write_small_inputs(tmp_path)
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump(small_settings(tmp_path), sort_keys=False))
    return path


@pytest.fixture
def small_pipeline(small_config: Path) -> PipelineConfig:
    return PipelineConfig(**yaml.safe_load(small_config.read_text()))


@pytest.fixture(scope="module")
def shared_pipeline(tmp_path_factory: pytest.TempPathFactory) -> PipelineConfig:
    """As ``small_pipeline``, with one store for all tests of a file: later runs reuse stages."""
    folder = tmp_path_factory.mktemp("shared")
    write_small_inputs(folder)
    return PipelineConfig(**small_settings(folder))


@pytest.fixture(scope="session")
def trained_run(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The configuration file of a run that is trained and evaluated, to be read only."""
    folder = tmp_path_factory.mktemp("trained")
    write_small_inputs(folder)
    values = {key: value for key, value in small_settings(folder).items() if key != "score"}
    path = folder / "trained.yaml"
    path.write_text(yaml.safe_dump(values, sort_keys=False))
    run_pipeline(PipelineConfig(**values), RunDisplay(Console(quiet=True)))
    return path


@pytest.fixture
def display() -> RunDisplay:
    return RunDisplay(Console(quiet=True))


class PegProcess:
    """A `peg` that was started: what :class:`subprocess.Popen` tells of it."""

    def __init__(self, launcher: Launcher, arguments: list[str], output: Path) -> None:
        self._launcher, self._output = launcher, output
        self.pid: int = launcher.ask(start=arguments, output=str(output))
        self.returncode: int | None = None

    @property
    def output(self) -> str:
        """Of both streams."""
        return self._output.read_text()

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._launcher.ask(poll=self.pid)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def wait(self, timeout: float = 300) -> int:
        deadline = time.monotonic() + timeout
        while (code := self.poll()) is None:
            assert time.monotonic() < deadline, self.output
            time.sleep(0.01)
        return code


class Launcher:
    """Starts `peg` as often as asked and pays for its imports once.

    Args:
        environment: Of the commands; None: that of the tests.
    """

    def __init__(self, folder: Path, environment: dict[str, str] | None = None) -> None:
        self._folder, self._started = folder, 0
        # -P: the folders of tests are called like the packages
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).with_name("fork_commands.py"))],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, **request: object) -> int | None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer: int | None = json.loads(self._process.stdout.readline())
        return answer

    def start(self, *arguments: object) -> PegProcess:
        self._started += 1
        output = self._folder / f"output-{self._started}.txt"
        return PegProcess(self, [str(item) for item in arguments], output)

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:  # its commands have ended, nothing is lost with it
            self._process.kill()


@pytest.fixture(scope="session")
def start_peg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., PegProcess]]:
    """Starts the command with its arguments in a process of its own."""
    launcher = Launcher(tmp_path_factory.mktemp("commands"))
    yield launcher.start
    launcher.close()


@pytest.fixture(scope="session")
def launcher_class() -> type[Launcher]:
    """To start commands in another environment."""
    return Launcher


class ObjectStore:
    """A real S3 server (moto) on loopback, in a process of its own."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._buckets = 0

    def options(self, port: int | None = None) -> str:
        return f"?endpoint_override=127.0.0.1:{port or self.port}&scheme=http&region=us-east-1"

    def new_bucket(self) -> str:
        """The name of an empty bucket."""
        self._buckets += 1
        name = f"bucket-{self._buckets}"
        filesystem = pafs.S3FileSystem(
            endpoint_override=f"127.0.0.1:{self.port}",
            scheme="http",
            region="us-east-1",
            allow_bucket_creation=True,
        )
        filesystem.create_dir(name)
        return name

    def require_login(self, *, needed: bool) -> None:
        """From now on keys are checked, or they are not."""
        self._post("reset-auth", b"0" if needed else b"inf")

    def _post(self, action: str, data: bytes = b"") -> None:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/moto-api/{action}",
            data=data,
            headers={"Content-Type": "text/plain"},
        )
        urllib.request.urlopen(request, timeout=10).close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def object_store() -> Iterator[ObjectStore]:
    """Needs moto and flask, in this interpreter or in that of ``PEG_MOTO_PYTHON``."""
    python = os.environ.get("PEG_MOTO_PYTHON", sys.executable)
    found = subprocess.run([python, "-c", "import moto.server, flask_cors"], capture_output=True)
    if found.returncode:
        pytest.skip("no S3 server: install moto[s3], flask and flask-cors, or set PEG_MOTO_PYTHON")
    store = ObjectStore(free_port())
    command = [python, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(store.port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(150):
            try:
                socket.create_connection(("127.0.0.1", store.port), timeout=1).close()
                break
            except OSError:
                assert process.poll() is None
                time.sleep(0.2)
        yield store
    finally:
        process.terminate()
        process.wait()


class CuttingProxy:
    """Passes bytes on to a port; a connection is cut once ``cut_after`` bytes were sent.

    Args:
        cuts: How many connections are cut before all pass.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.cut_after, self.cuts, self.was_cut = 0, 0, 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._target))
            for pair in ((client, server, True), (server, client, False)):
                threading.Thread(target=self._pump, args=pair, daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, sending: bool) -> None:
        passed = 0
        try:
            while data := source.recv(65536):
                passed += len(data)
                if sending and self.was_cut < self.cuts and passed > self.cut_after:
                    self.was_cut += 1
                    break
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue


@pytest.fixture
def cutting_proxy(object_store: ObjectStore) -> Iterator[CuttingProxy]:
    """A bad network in front of the object store."""
    proxy = CuttingProxy(object_store.port)
    yield proxy
    proxy.close()


def server_port() -> int:
    """A free port that no outgoing connection is given: Ray opens it seconds later."""
    while True:
        port = random.SystemRandom().randint(20_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("", port))
            return port


class RayNode:
    """A `ray start --block` of its own: own ports, folder and token, beside any other Ray.

    Args:
        head: Address to join; none: this is the head of a new cluster.
    """

    def __init__(self, folder: Path, token: str, *, head: str | None = None, cpus: int = 2) -> None:
        self.port, self.dashboard_port, self.metrics_port = (server_port() for _ in range(3))
        self.address = head or f"127.0.0.1:{self.port}"
        self.dashboard = f"http://127.0.0.1:{self.dashboard_port}"
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("RAY_")},
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": token,
            "RAY_TMPDIR": str(folder),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_metrics_report_interval_ms": "500",
            # a busy machine must not kill a job that is about to end
            "RAY_JOB_STOP_WAIT_TIME_S": "60",
            # a lost node is noticed within seconds
            "RAY_health_check_period_ms": "500",
            "RAY_health_check_failure_threshold": "4",
        }
        place = [f"--address={head}"] if head else [
            "--head", f"--port={self.port}", "--dashboard-host=127.0.0.1",
            f"--dashboard-port={self.dashboard_port}", f"--ray-client-server-port={server_port()}",
        ]  # fmt: skip
        command = [
            sys.executable, "-m", "ray.scripts.scripts", "start", "--block", *place,
            "--node-ip-address=127.0.0.1", f"--num-cpus={cpus}", "--object-store-memory=80000000",
            f"--dashboard-agent-listen-port={server_port()}", "--include-log-monitor=false",
            f"--metrics-export-port={self.metrics_port}",
        ]  # fmt: skip
        self.log = folder / f"node-{self.metrics_port}.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command, env=self.environment, stdout=log, stderr=subprocess.STDOUT
            )

    def wait_for_jobs(self) -> None:
        """Until the job server answers, if only to say that it wants a token."""
        for _ in range(300):
            assert self.process.poll() is None, self.log.read_text()
            try:
                urllib.request.urlopen(f"{self.dashboard}/api/jobs/none", timeout=5).close()
            except urllib.error.HTTPError:
                return
            except OSError:
                time.sleep(0.2)
        raise AssertionError(self.log.read_text())

    def kill(self) -> None:
        """End the node and all its processes at once, as a power cut would."""
        root = psutil.Process(self.process.pid)
        for process in [root, *root.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait()


@pytest.fixture(scope="session")
def ray_head() -> Iterator[RayNode]:
    """A cluster of one node with token authentication and a job server on loopback."""
    # its sockets are below it, and their paths must be short
    with tempfile.TemporaryDirectory(prefix="peg-ray-", dir="/tmp") as folder:
        node = RayNode(Path(folder), secrets.token_hex(16))
        try:
            node.wait_for_jobs()
            yield node
        finally:
            node.kill()


@pytest.fixture(scope="session")
def ray_node_class() -> type[RayNode]:
    """To build clusters of several nodes."""
    return RayNode


@pytest.fixture(scope="session")
def small_inputs() -> Callable[[Path], dict[str, object]]:
    """Writes the inputs of the small pipeline to a folder and gives its settings."""

    def write(folder: Path) -> dict[str, object]:
        write_small_inputs(folder)
        return small_settings(folder)

    return write
