"""Paths below an artifact of an object store, on machines that share nothing else."""

import pickle
import threading

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from peg_core.atomic_file import atomic_path, write_array, write_json, written_files
from peg_core.errors import PegError
from peg_core.storage.array_parts import PARTS
from peg_core.storage.mirror import Attempt, Mirror
from peg_core.storage.object_storage import Storage
from peg_core.storage.shared_array import create_array, read_rows, write_rows
from peg_core.storage.stored_path import (
    StoredPath,
    bring_latest,
    is_there,
    publish,
    remove,
    stored_folder,
)

NAME = "embed/f"


@pytest.fixture
def machines(tmp_path, monkeypatch):
    """Makes this process the machine of a name, with a cache of its own."""
    return lambda name: monkeypatch.setenv("PEG_CACHE_DIR", str(tmp_path / name))


@pytest.fixture
def storage(object_store):
    return Storage(f"s3://{object_store.new_bucket()}/runs{object_store.options()}")


def attempt(storage, *, finished=False, run="run", token="token"):
    return Attempt(storage.location(), NAME, token, finished, run)


def finish(storage, records):
    files = {name: {"bytes": r.bytes, "xxh3": r.xxh3} for name, r in records.items()}
    storage.write_json(f"{NAME}/manifest.json", {"files": files})


def test_a_path_that_was_pickled_opens_the_same_file_on_another_machine(storage, machines):
    machines("a")
    file = stored_folder(attempt(storage)) / "part" / "numbers.npy"
    write_array(file, np.arange(5))
    publish([file])
    sent = pickle.dumps({"out": file})
    machines("b")
    received = pickle.loads(sent)["out"]
    assert received != file
    assert received.name == file.name
    assert type(received) is StoredPath
    np.testing.assert_array_equal(np.load(received, mmap_mode="r"), np.arange(5))


def test_every_reader_brings_the_file(storage, machines):
    machines("a")
    folder = stored_folder(attempt(storage))
    table = pl.DataFrame({"x": [1, 2, 3]})
    for name in ("one.parquet", "two.parquet"):
        with atomic_path(folder / name) as temporary:
            table.write_parquet(temporary)
    write_json(folder / "facts.json", {"a": 1})
    publish([folder / "one.parquet", folder / "two.parquet", folder / "facts.json"])
    machines("b")
    folder = stored_folder(attempt(storage))
    assert pq.ParquetFile(folder / "one.parquet").metadata.num_rows == 3
    assert pl.scan_parquet([folder / "one.parquet", folder / "two.parquet"]).collect().height == 6
    assert (folder / "facts.json").read_text().startswith("{")
    assert (folder / "facts.json").exists()
    assert not (folder / "other.json").exists()


def test_only_what_is_opened_is_brought(storage, machines):
    machines("a")
    folder = stored_folder(attempt(storage))
    write_array(folder / "small.npy", np.zeros(1))
    write_array(folder / "large.npy", np.zeros(1000))
    finish(storage, publish([folder / "small.npy", folder / "large.npy"]))
    machines("b")
    folder = stored_folder(attempt(storage, finished=True))
    assert [path.name for path in folder.glob("*.npy")] == ["large.npy", "small.npy"]
    assert is_there(folder / "large.npy")
    np.load(folder / "small.npy")
    here = {path.name for path in Mirror(attempt(storage, finished=True)).root.glob("*.npy")}
    assert here == {"small.npy"}


def test_a_task_publishes_what_it_wrote_and_nothing_that_it_brought(storage, machines):
    machines("a")
    folder = stored_folder(attempt(storage))
    with written_files() as written:
        write_array(folder / "mine.npy", np.zeros(3))
    publish(written)
    machines("b")
    folder = stored_folder(attempt(storage))
    with written_files() as written:
        values = np.load(folder / "mine.npy")
        write_array(folder / "yours.npy", values + 1)
    assert set(publish(written)) == {"yours.npy"}


@settings(max_examples=10, deadline=None)
@given(
    cuts=st.lists(st.integers(1, 6), min_size=1, max_size=5),
    width=st.integers(1, 40),
    kind=st.sampled_from(["float32", "float16", "int64", "uint8"]),
)
def test_rows_that_machines_wrote_make_one_array(object_store, tmp_path_factory, cuts, width, kind):
    folder = tmp_path_factory.mktemp("caches")
    storage = Storage(f"s3://{object_store.new_bucket()}/runs{object_store.options()}")
    rng = np.random.default_rng(0)
    whole = rng.integers(0, 100, (sum(cuts), width)).astype(kind)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PEG_CACHE_DIR", str(folder / "driver"))
        sent = pickle.dumps(stored_folder(attempt(storage)) / "layer.npy")
        create_array(pickle.loads(sent), whole.shape, kind)
        records, first = publish([]), 0
        for number, rows in enumerate(cuts):
            patch.setenv("PEG_CACHE_DIR", str(folder / str(number % 2)))
            with written_files() as written:
                write_rows(pickle.loads(sent), first, whole[first : first + rows].astype("float64"))
            records |= publish(written)
            first += rows
        for number in (0, 2):  # one has some parts already, one has none
            patch.setenv("PEG_CACHE_DIR", str(folder / str(number)))
            np.testing.assert_array_equal(np.load(pickle.loads(sent), mmap_mode="r"), whole)
            assert np.load(pickle.loads(sent)).dtype == kind
        described = f"layer.npy{PARTS}/array.json"
        data = storage.read_text(f"{NAME}/{described}").encode()
        size = type(next(iter(records.values())))
        records[described] = size(len(data), xxhash.xxh3_128_hexdigest(data))
        finish(storage, records)
        for number in (0, 3):
            patch.setenv("PEG_CACHE_DIR", str(folder / str(number)))
            file = stored_folder(attempt(storage, finished=True)) / "layer.npy"
            np.testing.assert_array_equal(np.load(file, mmap_mode="r"), whole)
            assert [p.name for p in file.parent.glob("layer*")] == ["layer.npy"]


def test_rows_are_read_without_the_rest_of_the_file(storage, machines):
    machines("a")
    file = stored_folder(attempt(storage)) / "keys.npy"
    write_array(file, np.arange(3000).reshape(1000, 3))
    publish([file])
    sent = pickle.dumps(file)
    machines("b")
    file = pickle.loads(sent)
    np.testing.assert_array_equal(read_rows(file, 10, 12), [[30, 31, 32], [33, 34, 35]])
    assert read_rows(file, 999, 5000).shape == (1, 3)
    assert read_rows(file, 7, 7).shape == (0, 3)
    assert not Mirror(attempt(storage)).root.joinpath("keys.npy").exists()


def test_a_damaged_copy_is_brought_anew_in_the_next_run_and_a_damaged_object_is_named(
    storage, machines
):
    machines("a")
    file = stored_folder(attempt(storage)) / "x.npy"
    write_array(file, np.arange(100))
    finish(storage, publish([file]))
    local = Mirror(attempt(storage)).root / "x.npy"
    local.write_bytes(local.read_bytes()[:-1] + b"?")
    file = stored_folder(attempt(storage, finished=True, run="next")) / "x.npy"
    np.testing.assert_array_equal(np.load(file), np.arange(100))
    data = local.read_bytes()
    local.write_bytes(data[:-1] + b"?")
    storage.upload_file(local, f"{NAME}/x.npy")
    machines("b")
    file = stored_folder(attempt(storage, finished=True)) / "x.npy"
    with pytest.raises(PegError, match=r"x\.npy.* is damaged"):
        np.load(file)


def test_one_flipped_bit_in_an_assembled_array_is_noticed_in_the_next_run(storage, machines):
    machines("a")
    file = stored_folder(attempt(storage)) / "layer.npy"
    with written_files() as written:
        create_array(file, (6, 2), "float32")
        write_rows(file, 0, np.ones((4, 2)))
        write_rows(file, 4, np.zeros((2, 2)))
    finish(storage, publish(written))
    for run in ("first", "second"):
        file = stored_folder(attempt(storage, finished=True, run=run)) / "layer.npy"
        np.testing.assert_array_equal(np.load(file)[:, 0], [1, 1, 1, 1, 0, 0])
        local = Mirror(attempt(storage)).root / "layer.npy"
        data = bytearray(local.read_bytes())
        data[-3] ^= 16
        local.write_bytes(bytes(data))


def test_files_of_an_earlier_attempt_are_not_taken_for_those_of_this_one(storage, machines):
    machines("a")
    old = stored_folder(attempt(storage, token="old")) / "x.npy"
    write_array(old, np.zeros(1))
    publish([old])
    new = stored_folder(attempt(storage, token="new")) / "x.npy"
    write_array(new, np.ones(1))
    publish([new])
    assert np.load(old)[0] == 0
    machines("b")
    assert np.load(stored_folder(attempt(storage, token="new")) / "x.npy")[0] == 1


def test_what_another_machine_published_last_is_read_where_it_is_asked_for(storage, machines):
    machines("a")
    file = stored_folder(attempt(storage)) / "checkpoint.json"
    write_json(file, 1)
    publish([file])
    sent = pickle.dumps(file)
    machines("b")
    write_json(pickle.loads(sent), 2)
    publish([pickle.loads(sent)])
    machines("a")
    assert pickle.loads(sent).read_text() == "1"
    assert bring_latest(pickle.loads(sent)).read_text() == "2"


def test_removing_removes_here_and_in_the_store(storage, machines):
    machines("a")
    folder = stored_folder(attempt(storage))
    write_array(folder / "work" / "x.npy", np.zeros(1))
    create_array(folder / "layer-0.npy", (2, 1), "float32")
    write_rows(folder / "layer-0.npy", 0, np.zeros((2, 1)))
    publish([folder / "work" / "x.npy", folder / f"layer-0.npy{PARTS}" / "000000000000000-2.npy"])
    remove(folder / "work")
    remove(folder / "layer-0.npy")
    assert storage.files(NAME) == []
    assert not list(folder.glob("*"))
    remove(folder / "work")  # doing it twice is nothing special


def test_threads_that_open_the_same_file_bring_it_once(storage, machines, monkeypatch):
    machines("a")
    file = stored_folder(attempt(storage)) / "x.npy"
    write_array(file, np.arange(10))
    publish([file])
    sent = pickle.dumps(file)
    machines("b")
    fetched, download = [], Storage.download_file

    def count(self, name, target):
        fetched.append(name)
        download(self, name, target)

    monkeypatch.setattr(Storage, "download_file", count)
    threads = [threading.Thread(target=lambda: np.load(pickle.loads(sent))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(fetched) == 1


def test_in_a_folder_arrays_are_filled_in_place(tmp_path):
    file = tmp_path / "layer.npy"
    create_array(file, (4, 2), "float16")
    write_rows(file, 2, np.ones((2, 2)))
    create_array(file, (4, 2), "float16")  # a second time: what is there stays
    np.testing.assert_array_equal(np.load(file), [[0, 0], [0, 0], [1, 1], [1, 1]])
    np.testing.assert_array_equal(read_rows(file, 1, 3), [[0, 0], [1, 1]])
    create_array(tmp_path / "none.npy", (0, 2), "float32")
    assert np.load(tmp_path / "none.npy").shape == (0, 2)
