import http.server
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import psutil
import pytest

from peg_core.errors import ConfigError
from pipeline.cli.doctor_checks import is_loopback
from workers.cluster import Cluster, ClusterSettings, ClusterUnreachable

# Says what a local Ray shows to others while it runs, and ends it.
LOOK = """
import json, os, time
import psutil, ray
from workers.cluster import Cluster, ClusterSettings

cluster = Cluster(ClusterSettings(workers=1, train_workers=2))
cluster.connect()
ray.get(ray.remote(lambda: time.sleep(2)).remote())
me = psutil.Process()
family = [me, *me.children(recursive=True)]
heard = [found.laddr.ip for process in family for found in process.net_connections("inet")
         if found.status == "LISTEN"]
told = [process.name() for process in family
        if os.environ["RAY_AUTH_TOKEN"] in " ".join(process.cmdline())]
print(json.dumps({"heard": heard, "told": told, "token": os.environ["RAY_AUTH_TOKEN"]}), flush=True)
input()
cluster.close()
print(json.dumps("RAY_AUTH_TOKEN" in os.environ))
"""


@pytest.fixture
def private_environment(tmp_path):
    """A temporary folder and a home of its own; the first is short: sockets are below it."""
    home = tmp_path / "home"
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    with tempfile.TemporaryDirectory(prefix="t-", dir="/tmp") as temporary:
        yield {**kept, "TMPDIR": temporary, "HOME": str(home), "PYTHONPATH": os.getcwd()}


def test_nothing_is_started_before_it_is_needed():
    Cluster(ClusterSettings()).close()


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1"])
def test_an_address_that_nobody_answers_is_named_at_once(address):
    with pytest.raises(ClusterUnreachable, match=rf"cannot reach {address} .*remove `address`"):
        Cluster.require_ray(address)


@pytest.fixture
def web_server():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def silent_server():
    """Takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("scheme", ["", "ray://"])
@pytest.mark.parametrize("kind", ["web_server", "silent_server"])
def test_a_server_that_is_not_ray_is_told_apart(kind, scheme, request, monkeypatch):
    monkeypatch.setattr("workers.cluster.CONNECT_SECONDS", 3.0)
    monkeypatch.setattr("ray.is_initialized", lambda: False)  # whatever ran before
    address = scheme + request.getfixturevalue(kind)
    with pytest.raises(ClusterUnreachable, match=f"{address} .*is not Ray"):
        Cluster(ClusterSettings(address=address)).connect()


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize("token", [None, "wrong"])
def test_a_cluster_is_joined_with_its_token_alone(ray_head, token, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("RAY_AUTH_TOKEN_PATH", raising=False)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", ray_head.environment["RAY_AUTH_TOKEN"])
    Cluster.require_ray(ray_head.address)
    if token is None:
        monkeypatch.delenv("RAY_AUTH_TOKEN")
    else:
        monkeypatch.setenv("RAY_AUTH_TOKEN", token)
    with pytest.raises(ClusterUnreachable, match="it refused the token"):
        Cluster.require_ray(ray_head.address)


def test_certificates_that_are_missing_are_named(monkeypatch, silent_server):
    monkeypatch.setenv("RAY_USE_TLS", "1")
    monkeypatch.delenv("RAY_TLS_CA_CERT", raising=False)
    with pytest.raises(ConfigError, match=r"RAY_TLS_CA_CERT.*set RAY_TLS_CA_CERT"):
        Cluster.require_ray(silent_server)


@pytest.mark.ray
@pytest.mark.usefixtures("cluster")
def test_the_answer_to_a_polite_kill_is_not_that_of_ray():
    handler = signal.getsignal(signal.SIGTERM)
    assert not getattr(handler, "__module__", "").startswith("ray")


def readable_by_others(folder: Path, token: str) -> list[Path]:
    """Files with the token that other users can open."""
    found = subprocess.run(["grep", "-rlF", token, str(folder)], capture_output=True, text=True)
    return [Path(name) for name in found.stdout.splitlines() if Path(name).stat().st_mode & 0o077]


@pytest.mark.ray
@pytest.mark.slow
def test_a_local_ray_is_private(private_environment):
    home, temporary = (Path(private_environment[name]) for name in ("HOME", "TMPDIR"))
    old = home / ".ray" / "auth_token"
    old.parent.mkdir(mode=0o755)
    old.write_text("0" * 64)  # as Ray leaves it
    old.chmod(0o644)
    process = subprocess.Popen(
        [sys.executable, "-c", LOOK],
        env=private_environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    seen = json.loads(process.stdout.readline())
    [session] = temporary.iterdir()
    assert stat.S_IMODE(session.stat().st_mode) == 0o700
    assert readable_by_others(temporary, seen["token"]) == []
    assert readable_by_others(home, seen["token"]) == []
    assert seen["told"] == []
    # the daemons, the dashboard, the driver and a worker at least
    assert len(seen["heard"]) >= 6
    assert [ip for ip in seen["heard"] if not is_loopback(ip)] == []
    children = psutil.Process(process.pid).children(recursive=True)
    rest, _ = process.communicate("\n", timeout=60)
    assert json.loads(rest) is False
    assert list(temporary.iterdir()) == []
    assert [path.name for path in home.rglob("*")] == [".ray", "auth_token"]
    assert stat.S_IMODE(old.stat().st_mode) == 0o600
    assert stat.S_IMODE(old.parent.stat().st_mode) == 0o700
    assert psutil.wait_procs(children, timeout=20)[1] == []
