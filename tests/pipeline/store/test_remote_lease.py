"""The lease against a real S3 server whose conditional writes are atomic, as those of S3 are."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from peg_core import conditional_object
from peg_core.artifacts.manifest import Identity, Manifest
from peg_core.conditional_object import ConditionalObject
from peg_core.errors import PegError
from peg_core.object_url import ObjectUrl, StorageError
from peg_core.storage.object_storage import Storage
from pipeline.store import lease, remote_lease
from pipeline.store.lease import StoreBusy
from pipeline.store.local_store import open_store
from pipeline.store.remote_lease import (
    ALLOWED,
    NAME,
    LeaseLost,
    RemoteLease,
    StoreWithoutLock,
    current_holder,
)
from tests.fixtures.object_store import CuttingProxy, ObjectStore, free_port

# moto checks the condition and writes, and another request can come between: here one at a time.
# Below `careless` conditions are not looked at, below `refusing` they are not known.
SERVER = """
import sys, threading
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

moto, one_at_a_time = DomainDispatcherApplication(create_backend_app), threading.Lock()
CONDITIONS = ("HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH")

def application(environ, start_response):
    if "/refusing/" in environ["PATH_INFO"] and any(name in environ for name in CONDITIONS):
        environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
        start_response("501 Not Implemented", [("Content-Length", "0")])
        return []
    if "/careless/" in environ["PATH_INFO"]:
        for name in CONDITIONS:
            environ.pop(name, None)
    with one_at_a_time:
        return list(moto(environ, start_response))

run_simple("127.0.0.1", int(sys.argv[1]), application, threaded=True)
"""
BEGIN = """
import os, sys, time
from peg_core.errors import PegError
from peg_core.storage.object_storage import Storage
from pipeline.store import lease, remote_lease
from pipeline.store.remote_lease import RemoteLease

url = sys.argv[1]
print("ready", flush=True)
sys.stdin.readline()
"""
# Takes the lease several times; an exclusive file tells whether two are inside.
RACER = f"""{BEGIN}
mark, wins, lease.RENEW_SECONDS = sys.argv[2], int(sys.argv[3]), 0.02
while wins:
    try:
        with RemoteLease(Storage(url)) as held:
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
            time.sleep(0.01)
            held.require_held()
            os.unlink(mark)
        wins -= 1
    except lease.StoreBusy:
        time.sleep(0.01)
print("done")
"""
# A run with a short lease that says what becomes of it, and ends when told.
HOLDER = f"""{BEGIN}
lease.LEASE_SECONDS, lease.RENEW_SECONDS, remote_lease.MARGIN_SECONDS = 2.0, 0.2, 0.5
try:
    with RemoteLease(Storage(url)) as held:
        print("held", flush=True)
        sys.stdin.readline()
        held.require_held()
        print("still held", flush=True)
except PegError as error:
    print(type(error).__name__, error, flush=True)
"""
ELSEWHERE = {"host": "another", "pid": 1, "process_started": 0, "started": 0, "expires": 0}


@pytest.fixture(scope="module")
def store():
    server = ObjectStore(free_port())
    if subprocess.run([sys.executable, "-c", "import moto.server, flask_cors"]).returncode:
        pytest.skip("no S3 server: install moto[s3], flask and flask-cors")
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(server.port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", server.port), timeout=1).close()
                break
            except OSError:
                assert process.poll() is None
                time.sleep(0.1)
        yield server
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(autouse=True)
def quick(monkeypatch, tmp_path):
    monkeypatch.setattr(conditional_object, "PAUSE_SECONDS", 0.01)
    monkeypatch.setenv("PEG_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def url(store):
    return f"s3://{store.new_bucket()}/runs{store.options()}"


@pytest.fixture
def start():
    """Start a script and wait until it is ready; a line on its input lets it go on."""
    processes = []

    def begin(script, *arguments):
        command = [sys.executable, "-c", script, *map(str, arguments)]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        processes.append(process)
        return process

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


def go(*processes):
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        tell(process)


def tell(process):
    process.stdin.write("\n")
    process.stdin.flush()


def put_lease(url, facts):
    text = facts if isinstance(facts, bytes) else json.dumps(facts).encode()
    ConditionalObject(ObjectUrl.parse(Storage(url).location(NAME))).write(text, over=None)


def test_of_many_racing_runs_never_two_hold_the_store(url, start, tmp_path):
    racers = [start(RACER, url, tmp_path / "inside", 6) for _ in range(6)]
    go(*racers)
    assert [racer.stdout.read() for racer in racers] == ["done\n"] * 6
    assert current_holder(Storage(url)) is None


def test_an_expired_lease_is_taken_over_by_exactly_one(url, start):
    put_lease(url, {**ELSEWHERE, "held": True})
    with pytest.raises(StoreBusy, match="process 1 on another"), RemoteLease(Storage(url)):
        pass
    holders = [start(HOLDER, url) for _ in range(4)]
    time.sleep(3.1)
    go(*holders)
    said = [holder.stdout.readline() for holder in holders]
    assert sum(line == "held\n" for line in said) == 1
    winner = holders[said.index("held\n")]
    assert (
        sum(f"StoreBusy the store has been in use by process {winner.pid}" in s for s in said) == 3
    )
    tell(winner)
    assert winner.stdout.readline() == "still held\n"


def test_a_run_that_stood_still_notices_that_another_took_over(url, start, monkeypatch):
    monkeypatch.setattr(lease, "LEASE_SECONDS", 2.0)
    monkeypatch.setattr(remote_lease, "MARGIN_SECONDS", 0.5)
    holder = start(HOLDER, url)
    go(holder)
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(StoreBusy), RemoteLease(Storage(url)):
        pass
    holder.send_signal(signal.SIGSTOP)
    time.sleep(3.1)
    with RemoteLease(Storage(url)) as held:
        holder.send_signal(signal.SIGCONT)
        tell(holder)
        said = holder.stdout.readline()
        assert said.startswith("LeaseLost")
        assert f"taken over or removed by process {os.getpid()} on" in said
        holder.wait()
        held.require_held()


def test_the_lease_of_a_killed_run_of_this_machine_is_free_at_once(url, start):
    holder = start(HOLDER, url)
    go(holder)
    assert holder.stdout.readline() == "held\n"
    assert current_holder(Storage(url))["pid"] == holder.pid
    holder.kill()
    holder.wait()
    assert current_holder(Storage(url)) is None
    with RemoteLease(Storage(url)):
        assert current_holder(Storage(url))["pid"] == os.getpid()


def test_a_machine_of_the_same_name_is_another_one(url):
    gone = {**lease.own_facts(), "pid": 2**30, "expires": 0, "held": True}
    put_lease(url, {**gone, "machine": "boot of another"})
    with pytest.raises(StoreBusy), RemoteLease(Storage(url)):
        pass


def test_a_lease_that_cannot_be_read_counts_until_it_expires(url, monkeypatch):
    put_lease(url, b"{")
    assert current_holder(Storage(url)) is None
    with pytest.raises(StoreBusy, match="another process"), RemoteLease(Storage(url)):
        pass
    monkeypatch.setattr(lease, "LEASE_SECONDS", -10.0)
    with RemoteLease(Storage(url)):
        assert current_holder(Storage(url)) is not None


def test_what_older_versions_announced_counts_until_it_expires(url, monkeypatch):
    old = "lease/01763000000000000000-1.json"
    Storage(url).write_json(old, {**ELSEWHERE, "held": True})
    with pytest.raises(StoreBusy, match=old), RemoteLease(Storage(url)):
        pass
    assert current_holder(Storage(url)) is None
    monkeypatch.setattr(lease, "LEASE_SECONDS", -10.0)
    with RemoteLease(Storage(url)):
        assert [file.name for file in Storage(url).files("lease")] == [NAME]


class OneCut(CuttingProxy):
    """Cuts one connection: its request, or the answer to what the store has done by then."""

    def __init__(self, target, nth, *, answer):
        self.left, self.answer = nth, answer
        super().__init__(target)

    def _pump(self, source, sink, sending):
        if sending:
            self.left -= 1
            self.cuts = 1 if self.left == 0 else self.cuts
        super()._pump(source, sink, sending != self.answer)


# 6 requests look at the store, 2 take the lease, 1 lists, 1 renews, 2 give back
@pytest.mark.parametrize(
    ("nth", "answer"), [*((nth, True) for nth in range(1, 13)), (8, False), (12, False)]
)
def test_a_lost_request_or_answer_changes_nothing(store, nth, answer):
    proxy = OneCut(store.port, nth, answer=answer)
    path = f"s3://{store.new_bucket()}/runs"
    try:
        with RemoteLease(Storage(path + store.options(proxy.port))) as held:
            held.require_held()
            with pytest.raises(StoreBusy), RemoteLease(Storage(path + store.options())):
                pass
        assert proxy.was_cut == 1
        assert current_holder(Storage(path + store.options())) is None
    finally:
        proxy.close()


def test_nothing_is_committed_once_the_lease_is_gone(url):
    store = open_store(url)
    identity = Identity("split", 1, {}, {}, {})
    manifest = Manifest(identity, identity.fingerprint, "then", "now", 1.5, 10)
    with store.lease():
        artifact = store.prepare("split", identity.fingerprint, afresh=False)
        store.storage.delete(NAME)
        with pytest.raises(PegError, match="taken over or removed"):
            store.commit(manifest, artifact, {})
    assert store.find("split", identity.fingerprint) is None


def test_without_the_network_the_lease_is_trusted_until_it_may_have_expired(store, monkeypatch):
    proxy = OneCut(store.port, 0, answer=True)
    lock = RemoteLease(Storage(f"s3://{store.new_bucket()}/runs{store.options(proxy.port)}"))
    with lock as held:
        proxy.cuts = 10_000  # writes arrive, and nobody hears of it
        held.require_held()
        monkeypatch.setattr(lease, "LEASE_SECONDS", 0.0)
        with pytest.raises(LeaseLost, match="could not be renewed"):
            held.require_held()
        proxy.cuts = 0
        monkeypatch.setattr(lease, "LEASE_SECONDS", 60.0)
        held.require_held()
    proxy.close()
    with pytest.raises(LeaseLost, match="given back"):
        lock.require_held()


@pytest.mark.parametrize("kind", ["careless", "refusing"])
def test_a_store_without_conditions_is_refused_unless_that_is_wanted(store, kind, monkeypatch):
    storage = Storage(f"s3://{store.new_bucket()}/{kind}{store.options()}")
    with pytest.raises(StoreWithoutLock, match=f"without conditional writes.*{ALLOWED}=1"):
        RemoteLease(storage).__enter__()
    monkeypatch.setenv(ALLOWED, "1")
    with RemoteLease(storage) as held:
        held.require_held()
        with pytest.raises(StoreBusy), RemoteLease(storage):
            pass
    assert current_holder(storage) is None


def test_a_missing_bucket_is_told(store):
    with pytest.raises(StorageError, match=r"no-such-bucket.*create the bucket"):
        RemoteLease(Storage(f"s3://no-such-bucket/x{store.options()}")).__enter__()


def test_keys_may_stand_in_the_file_of_profiles(url, monkeypatch, tmp_path):
    keys = tmp_path / "credentials"
    keys.write_text("[mine]\naws_access_key_id = key\naws_secret_access_key = secret\n")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1")  # nothing answers there
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(keys))
    monkeypatch.setenv("AWS_PROFILE", "mine")
    with RemoteLease(Storage(url)):
        assert current_holder(Storage(url)) is not None
