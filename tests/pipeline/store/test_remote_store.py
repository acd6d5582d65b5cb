import shutil

import numpy as np
import pytest

from peg_core.artifacts.manifest import Identity, Manifest
from peg_core.atomic_file import atomic_path, write_json
from peg_core.errors import PegError
from peg_core.storage.array_parts import PARTS
from peg_core.storage.object_storage import Storage
from peg_core.storage.shared_array import create_array, write_rows
from peg_core.storage.stored_path import publish
from pipeline.store.local_store import ArtifactStore, open_store
from pipeline.store.remote_store import RemoteArtifactStore

IDENTITY = Identity("split", 1, {}, {}, {})
FINGERPRINT = IDENTITY.fingerprint


def manifest(finished="2026-01-01"):
    return Manifest(IDENTITY, FINGERPRINT, "then", finished, 1.5, 10)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PEG_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def url(object_store):
    return f"s3://{object_store.new_bucket()}/runs{object_store.options()}"


def write(artifact, text):
    """Write a file of an artifact, and bring it to the store."""
    with atomic_path(artifact.folder / "data") as temporary:
        temporary.write_text(text)
    return publish([artifact.folder / "data"])


def make(url, text="data", finished="2026-01-01", *, afresh=False):
    store = open_store(url)
    artifact = store.prepare("split", FINGERPRINT, afresh=afresh)
    store.commit(manifest(finished), artifact, write(artifact, text))
    store.close()


def read(store):
    return (store.fetch("split", FINGERPRINT).folder / "data").read_text()


def test_the_location_decides_the_kind_of_store(tmp_path, url):
    assert isinstance(open_store(str(tmp_path)), ArtifactStore)
    assert isinstance(open_store(url), RemoteArtifactStore)


def test_an_artifact_exists_once_it_was_committed_and_reaches_another_machine(url, cache):
    store = open_store(url)
    artifact = store.prepare("split", FINGERPRINT, afresh=False)
    files = write(artifact, "data")
    assert store.find("split", FINGERPRINT) is None
    assert store.newest("split") is None
    store.commit(manifest(), artifact, files)
    shutil.rmtree(cache)
    other = open_store(url)
    assert other.newest("split").sizes == {"data": 4}
    assert read(other) == "data"


def test_what_is_in_the_cache_is_not_downloaded_again(url, monkeypatch):
    make(url)
    assert read(open_store(url)) == "data"
    monkeypatch.setattr(Storage, "download_file", lambda *_: pytest.fail("downloaded"))
    store = open_store(url)
    folder = store.ref("split", FINGERPRINT, finished=True).folder
    assert (folder / "data").exists()


def test_a_cached_artifact_that_was_made_again_elsewhere_is_brought_anew(url, cache):
    make(url, "first")
    shutil.copytree(cache, cache.with_name("here"))
    make(url, "later", finished="2026-02-01", afresh=True)
    shutil.rmtree(cache)
    cache.with_name("here").rename(cache)
    assert read(open_store(url)) == "later"


def test_shards_stay_until_forced_or_removed_from_the_store_also_on_another_machine(url, cache):
    def shards(*, afresh=False):
        folder = open_store(url).prepare("split", FINGERPRINT, afresh=afresh).folder
        return [path.name for path in folder.glob("data")]

    write(open_store(url).prepare("split", FINGERPRINT, afresh=False), "shard")
    assert shards() == ["data"]
    shutil.rmtree(cache)
    assert shards() == ["data"]
    assert shards(afresh=True) == []
    make(url)
    open_store(url).storage.delete(f"split/{FINGERPRINT}")
    assert shards() == []


def test_what_a_killed_process_did_not_bring_to_the_store_is_written_again(url):
    artifact = open_store(url).prepare("split", FINGERPRINT, afresh=False)
    write(artifact, "published")
    write_json(artifact.folder / "only-here.json", {})
    create_array(artifact.folder / "layer.npy", (2, 1), "float32")
    write_rows(artifact.folder / "layer.npy", 0, np.ones((2, 1)))
    publish([artifact.folder / f"layer.npy{PARTS}" / "000000000000000-2.npy"])
    assert np.load(artifact.folder / "layer.npy").sum() == 2
    again = open_store(url).prepare("split", FINGERPRINT, afresh=False).folder
    assert not (again / "only-here.json").exists()
    assert (again / "data").read_text() == "published"
    assert np.load(again / "layer.npy").sum() == 2


def test_an_artifact_set_aside_begins_anew(url):
    make(url)
    store = open_store(url)
    store.set_aside("split", FINGERPRINT)
    assert store.find("split", FINGERPRINT) is None
    folder = store.prepare("split", FINGERPRINT, afresh=False).folder
    assert not list(folder.glob("data"))


def test_marks_of_finished_shards_are_counted(url):
    store = open_store(url)
    assert store.finished_shards("split", FINGERPRINT) is None
    artifact = store.prepare("split", FINGERPRINT, afresh=False)
    assert store.finished_shards("split", FINGERPRINT) == 0
    mark = artifact.folder / "done" / "part-0.json"
    write_json(mark, {})
    publish([mark])
    assert store.finished_shards("split", FINGERPRINT) == 1
    assert "done/part-0.json" not in store.commit(manifest(), artifact, {}).files


def test_a_file_that_did_not_arrive_whole_is_not_committed(url, tmp_path):
    store = open_store(url)
    artifact = store.prepare("split", FINGERPRINT, afresh=False)
    files = write(artifact, "all of it")
    short = tmp_path / "short"
    short.write_text("half")
    store.storage.upload_file(short, f"split/{FINGERPRINT}/data")
    with pytest.raises(PegError, match="did not arrive complete"):
        store.commit(manifest(), artifact, files)


def test_a_lost_object_is_noticed(url, cache):
    make(url)
    store = open_store(url)
    store.storage.delete(f"split/{FINGERPRINT}/data")
    shutil.rmtree(cache)
    assert "data is missing" in store.damage("split", FINGERPRINT, contents=False)
    with pytest.raises(PegError, match=r"cannot read .*data"):
        read(store)


def test_current_names_the_artifacts_of_the_last_run(url):
    store = open_store(url)
    for stage, name in (("split", "a"), ("train", "b"), ("split", "c")):
        store.point_current(stage, name)
    assert store.storage.read_json("current.json") == {"split": "c", "train": "b"}
