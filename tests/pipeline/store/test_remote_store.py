import shutil
import threading

import pytest

from peg_core.artifacts.manifest import Identity, Manifest
from peg_core.errors import PegError
from pipeline.store import lease, remote_lease
from pipeline.store.lease import StoreBusy
from pipeline.store.local_store import ArtifactStore, open_store
from pipeline.store.remote_lease import RemoteLease
from pipeline.store.remote_store import RemoteArtifactStore

IDENTITY = Identity("split", 1, {}, {}, {})
FINGERPRINT = IDENTITY.fingerprint


def manifest(finished="2026-01-01"):
    return Manifest(IDENTITY, FINGERPRINT, "then", finished, 1.5, 10)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(remote_lease, "SETTLE_SECONDS", 0.3)
    monkeypatch.setenv("PEG_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def url(object_store):
    return f"s3://{object_store.new_bucket()}/runs{object_store.options()}"


def make(url, text="data", finished="2026-01-01", *, afresh=False):
    store = open_store(url)
    artifact = store.prepare("split", FINGERPRINT, afresh=afresh)
    (artifact.folder / "data").write_text(text)
    store.commit(manifest(finished), artifact)
    store.close()


def test_the_location_decides_the_kind_of_store(tmp_path, url):
    assert isinstance(open_store(str(tmp_path)), ArtifactStore)
    assert isinstance(open_store(url), RemoteArtifactStore)


def test_an_artifact_exists_once_it_was_committed_and_reaches_another_machine(url, cache):
    store = open_store(url)
    artifact = store.prepare("split", FINGERPRINT, afresh=False)
    (artifact.folder / "data").write_text("data")
    assert store.find("split", FINGERPRINT) is None
    assert store.newest("split") is None
    store.commit(manifest(), artifact)
    shutil.rmtree(cache)
    other = open_store(url)
    assert other.newest("split").files == {"data": 4}
    assert (other.fetch("split", FINGERPRINT).folder / "data").read_text() == "data"


def test_what_is_in_the_cache_is_not_downloaded_again(url, monkeypatch):
    make(url)
    store = open_store(url)
    monkeypatch.setattr(store.storage, "download", lambda *_: pytest.fail("downloaded"))
    assert (store.fetch("split", FINGERPRINT).folder / "data").read_text() == "data"


def test_a_cached_artifact_that_was_made_again_elsewhere_is_brought_anew(url, cache):
    make(url, "first")
    shutil.copytree(cache, cache.with_name("here"))
    make(url, "later", finished="2026-02-01", afresh=True)
    shutil.rmtree(cache)
    cache.with_name("here").rename(cache)
    assert (open_store(url).fetch("split", FINGERPRINT).folder / "data").read_text() == "later"


def test_shards_stay_on_this_machine_until_forced_or_removed_from_the_store(url):
    store = open_store(url)
    (store.prepare("split", FINGERPRINT, afresh=False).folder / "shard").touch()
    assert (store.prepare("split", FINGERPRINT, afresh=False).folder / "shard").exists()
    assert not (store.prepare("split", FINGERPRINT, afresh=True).folder / "shard").exists()
    make(url)
    store.storage.delete(f"split/{FINGERPRINT}")
    assert not list(store.prepare("split", FINGERPRINT, afresh=False).folder.iterdir())


def test_a_lost_object_is_noticed(url, cache):
    make(url)
    store = open_store(url)
    store.storage.delete(f"split/{FINGERPRINT}/data")
    shutil.rmtree(cache)
    with pytest.raises(PegError, match=r"cannot read .*data"):
        store.fetch("split", FINGERPRINT)


def test_current_names_the_artifacts_of_the_last_run(url):
    store = open_store(url)
    for stage, name in (("split", "a"), ("train", "b"), ("split", "c")):
        store.point_current(stage, name)
    assert store.storage.read_json("current.json") == {"split": "c", "train": "b"}


def test_of_several_runs_one_gets_the_lease(url):
    start, won, lost, done = threading.Barrier(4), [], [], threading.Event()

    def run():
        start.wait()
        try:
            with RemoteLease(open_store(url).storage):
                won.append(1)
                done.wait(20)
        except StoreBusy:
            lost.append(1)
            if len(lost) == 3:
                done.set()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), len(lost)) == (1, 3)
    assert open_store(url).storage.files("lease") == []


def test_a_held_lease_names_its_holder_whatever_the_clocks_say(url):
    store = open_store(url)
    with store.lease():
        late = RemoteLease(store.storage)
        late.name = "lease/00000.json"
        with pytest.raises(StoreBusy, match="in use by process"), late:
            pass
        assert store.holder()["held"]
    assert store.holder() is None


def test_the_lease_of_a_machine_that_went_away_expires(url, monkeypatch):
    storage = open_store(url).storage
    gone = {"host": "another", "pid": 1, "process_started": 0, "started": 0, "expires": 0}
    storage.write_json("lease/0.json", {**gone, "held": True})
    with pytest.raises(StoreBusy, match="on another"), RemoteLease(storage):
        pass
    monkeypatch.setattr(lease, "LEASE_SECONDS", -10.0)
    with RemoteLease(storage):
        assert len(storage.files("lease")) == 1


def test_nothing_is_committed_when_the_lease_was_lost(url):
    store = open_store(url)
    with store.lease() as held:
        artifact = store.prepare("split", FINGERPRINT, afresh=False)
        held._renewed -= 2 * lease.LEASE_SECONDS
        with pytest.raises(PegError, match="could not be renewed"):
            store.commit(manifest(), artifact)
    assert store.find("split", FINGERPRINT) is None
