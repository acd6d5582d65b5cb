import json

import pyarrow.fs as pafs
import pytest

from peg_core.errors import ConfigError
from peg_core.object_url import StorageError
from peg_core.storage.object_storage import Storage, file_facts, local_sizes


@pytest.fixture(params=["local", "s3"])
def storage(request, tmp_path):
    if request.param == "local":
        return Storage(str(tmp_path / "store"))
    server = request.getfixturevalue("object_store")
    return Storage(f"s3://{server.new_bucket()}/some/prefix{server.options()}")


@pytest.fixture
def artifact(tmp_path):
    folder = tmp_path / "artifact"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "array.npy").write_bytes(bytes(range(256)) * 1000)
    (folder / "empty").touch()
    (folder / ".array.npy.1.tmp").touch()
    (folder / "manifest.json").write_text('{"a": 1}')
    return folder


def upload_whole(storage, folder, name):
    """All files first, strictly last the manifest, as a store does it."""
    storage.upload(folder, name, local_sizes(folder))
    storage.write_json(f"{name}/manifest.json", {"a": 1})


def test_what_was_written_is_read(storage):
    assert storage.read_json("a/b.json") is None
    storage.write_json("a/b.json", {"x": [1, None]})
    assert storage.read_json("a/b.json") == {"x": [1, None]}
    assert storage.exists("a/b.json")
    assert not storage.exists("a/c.json")
    assert storage.folders() == ["a"]


def test_a_folder_goes_up_and_comes_down_as_it_was(storage, artifact, tmp_path):
    upload_whole(storage, artifact, "split/f")
    names = [file.name for file in storage.files("split")]
    assert names == ["split/f/deep/array.npy", "split/f/empty", "split/f/manifest.json"]
    storage.download_folder("split/f", tmp_path / "back")
    back = tmp_path / "back"
    assert local_sizes(back) == {"deep/array.npy": 256_000, "empty": 0}
    assert (back / "deep/array.npy").read_bytes() == (artifact / "deep/array.npy").read_bytes()
    assert json.loads((back / "manifest.json").read_text()) == {"a": 1}


def test_a_deleted_folder_is_gone_and_deleting_nothing_is_no_error(storage, artifact):
    upload_whole(storage, artifact, "split/f")
    storage.delete("split/f")
    storage.delete("split/f")
    assert storage.files() == []


def test_a_file_that_arrives_short_is_named(storage, artifact, tmp_path):
    storage.upload(artifact, "f", local_sizes(artifact))
    with pytest.raises(StorageError, match=r"1 of 1 files .*first empty: found 0, needed 5 bytes"):
        storage.download("f", tmp_path / "back", {"empty": 5})


def test_a_missing_bucket_is_named(object_store):
    storage = Storage(f"s3://no-such-bucket/x{object_store.options()}")
    with pytest.raises(StorageError, match=r"cannot write s3://no-such-bucket.*create the bucket"):
        storage.write_json("a.json", 1)


def test_refused_credentials_are_told(object_store):
    storage = Storage(f"s3://{object_store.new_bucket()}/x{object_store.options()}")
    object_store.require_login(needed=True)
    try:
        with pytest.raises(StorageError, match="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"):
            storage.write_json("a.json", 1)
    finally:
        object_store.require_login(needed=False)


def test_a_connection_cut_once_is_tried_again(object_store, cutting_proxy, artifact):
    bucket = object_store.new_bucket()
    cutting_proxy.cut_after, cutting_proxy.cuts = 100_000, 1
    proxied = Storage(f"s3://{bucket}{object_store.options(cutting_proxy.port)}")
    proxied.upload(artifact, "f", local_sizes(artifact))
    assert cutting_proxy.was_cut == 1
    direct = Storage(f"s3://{bucket}{object_store.options()}")
    assert {file.name: file.bytes for file in direct.files()}["f/deep/array.npy"] == 256_000


@pytest.mark.slow
def test_a_connection_that_is_always_cut_is_told_and_leaves_no_manifest(
    object_store, cutting_proxy, artifact
):
    bucket = object_store.new_bucket()
    cutting_proxy.cut_after, cutting_proxy.cuts = 100_000, 1000
    broken = Storage(f"s3://{bucket}{object_store.options(cutting_proxy.port)}")
    with pytest.raises(StorageError, match=r"cannot write .*array.npy.*check the network"):
        upload_whole(broken, artifact, "f")
    direct = Storage(f"s3://{bucket}{object_store.options()}")
    assert not direct.exists("f/manifest.json")
    upload_whole(direct, artifact, "f")
    assert direct.exists("f/manifest.json")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("s3://key:secret@bucket/x", "URL with credentials"),
        ("s3:///x", "names no bucket"),
        ("s3://bucket/x?regio=a", r"option 'regio'; known are .*mean 'region'\?"),
        ("gs://bucket/x?region=a", "option 'region'; known are scheme"),
    ],
)
def test_urls_that_cannot_work_are_refused(url, message):
    with pytest.raises(ConfigError, match=message) as caught:
        Storage(url)
    assert "secret" not in str(caught.value)


def test_google_urls_are_understood():
    storage = Storage("gs://bucket/x?anonymous=true")
    assert isinstance(storage._filesystem, pafs.GcsFileSystem)
    assert storage.location("a") == "gs://bucket/x/a?anonymous=true"


def test_facts_of_an_object_change_with_it(object_store):
    storage = Storage(f"s3://{object_store.new_bucket()}{object_store.options()}")
    storage.write_json("a", 1)
    first = file_facts(storage.location("a"))
    storage.write_json("a", 100)
    second = file_facts(storage.location("a"))
    assert (first["bytes"], second["bytes"]) == (1, 3)
    assert second["modified_ns"] >= first["modified_ns"] > 0
