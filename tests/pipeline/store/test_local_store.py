import pytest

from peg_core.artifacts.manifest import Identity, Manifest
from peg_core.errors import PegError
from pipeline.store.local_store import ArtifactStore

IDENTITY = Identity("split", 1, {"split": {"seed": 1}}, {"ingest": "abc"}, {})


def manifest(finished="2026-01-01"):
    return Manifest(IDENTITY, IDENTITY.fingerprint, "then", finished, 1.5, 10, {"links": 3})


def test_an_artifact_without_manifest_does_not_exist(tmp_path):
    store = ArtifactStore(tmp_path)
    folder = store.prepare("split", IDENTITY.fingerprint, afresh=False).folder
    (folder / "data").touch()
    assert store.find("split", IDENTITY.fingerprint) is None
    manifest().write(folder)
    assert store.find("split", IDENTITY.fingerprint) == manifest()


def test_every_part_of_the_identity_changes_the_fingerprint():
    others = [
        Identity("splits", 1, {"split": {"seed": 1}}, {"ingest": "abc"}, {}),
        Identity("split", 2, {"split": {"seed": 1}}, {"ingest": "abc"}, {}),
        Identity("split", 1, {"split": {"seed": 2}}, {"ingest": "abc"}, {}),
        Identity("split", 1, {"split": {"seed": 1}}, {"ingest": "abd"}, {}),
        Identity("split", 1, {"split": {"seed": 1}}, {"ingest": "abc"}, {"f": [{"bytes": 1}]}),
    ]
    assert len({IDENTITY.fingerprint, *(other.fingerprint for other in others)}) == 6


def test_an_interrupted_artifact_keeps_its_shards_and_a_forced_one_does_not(tmp_path):
    store = ArtifactStore(tmp_path)
    (store.prepare("split", "f", afresh=False).folder / "shard").touch()
    assert (store.prepare("split", "f", afresh=False).folder / "shard").exists()
    assert not (store.prepare("split", "f", afresh=True).folder / "shard").exists()


def test_the_newest_artifact_is_the_one_finished_last(tmp_path):
    store = ArtifactStore(tmp_path)
    for name, finished in (("a", "2026-02-01"), ("b", "2026-03-01"), ("c", "2026-01-01")):
        manifest(finished).write(store.prepare("split", name, afresh=False).folder)
    assert store.newest("split").finished == "2026-03-01"
    assert store.newest("train") is None


def test_current_leads_to_the_artifact_last_pointed_to(tmp_path):
    store = ArtifactStore(tmp_path)
    for name in ("a", "b"):
        (store.prepare("split", name, afresh=False).folder / name).touch()
        store.point_current("split", name)
    assert [path.name for path in (tmp_path / "current" / "split").iterdir()] == ["b"]


def test_a_store_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(PegError, match="file is a file where a folder is needed"):
        ArtifactStore(tmp_path / "file").prepare("split", "a", afresh=False)
