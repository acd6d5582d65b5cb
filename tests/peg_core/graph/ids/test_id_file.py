import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from peg_core.graph.ids import id_file
from peg_core.graph.ids.id_file import IdFile, write_ids
from peg_core.graph.ids.node_ids import NodeIds
from workers.process_memory.private_memory import private_bytes, watched_memory

CASES = {
    "dense": pa.array(range(-5, 95)),
    "sparse": pa.array([7 * 10**15 * i for i in range(-50, 50)]),
    "unsigned": pa.array([2**64 - 1 - i for i in range(100)], pa.uint64()),
    "text": pa.array(["", *(f"node {i}" * (i % 5) + str(i) for i in range(99))], pa.large_string()),
    "bytes": pa.array([bytes([i, 0]) for i in range(100)], pa.large_binary()),
}


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("name", CASES)
def test_files_do_not_depend_on_how_ids_are_cut_into_batches(name, tmp_path, monkeypatch):
    monkeypatch.setattr(id_file, "GROUP_IDS", 16)
    ids = CASES[name]
    write_ids([ids], tmp_path / "whole")
    batches = (ids.slice(start, 7) for start in range(0, len(ids), 7))
    assert write_ids(batches, tmp_path / "cut") == len(ids)
    assert contents(tmp_path / "cut") == contents(tmp_path / "whole")


@pytest.mark.parametrize("name", CASES)
def test_the_file_of_ids_is_that_of_pyarrow(name, tmp_path, monkeypatch):
    """Artifacts keep the bytes that they had when all ids were written at once."""
    monkeypatch.setattr(id_file, "GROUP_IDS", 16)
    write_ids([CASES[name].slice(0, 40), CASES[name].slice(40)], tmp_path)
    table = pa.table({"id": CASES[name]})
    pq.write_table(table, tmp_path / "plain.parquet", compression="zstd", row_group_size=16)
    written = contents(tmp_path)
    assert written["node_ids.parquet"] == written["plain.parquet"]


@pytest.mark.parametrize("name", CASES)
def test_stored_ids_are_looked_up_without_being_read(name, tmp_path, monkeypatch):
    monkeypatch.setattr(id_file, "GROUP_IDS", 16)
    write_ids([CASES[name]], tmp_path)
    monkeypatch.setattr(IdFile, "read", None)
    stored = NodeIds.open(tmp_path)
    assert len(stored) == 100
    assert stored.lookup(CASES[name]).tolist() == list(range(100))


def test_the_smallest_id_is_found_where_a_file_has_no_statistics(tmp_path):
    write_ids([pa.array([9, -3, 4])], tmp_path)
    table = pa.table({"id": [9, -3, 4]})
    pq.write_table(table, tmp_path / "node_ids.parquet", write_statistics=False)
    assert NodeIds.open(tmp_path).lookup(pa.array([4, -3, 9, 0])).tolist() == [2, 1, 0, -1]


@pytest.mark.parametrize("kind", [pa.int64(), pa.large_string()], ids=str)
def test_memory_does_not_grow_with_the_ids(kind, tmp_path, monkeypatch):
    """Writing and looking up hold a row group and a batch; the tables are the page cache's."""
    monkeypatch.setattr(id_file, "GROUP_IDS", 2**14)
    count = 1_000_000

    def batches(stop):
        for start in range(0, stop, 2**14):
            yield pa.array(np.arange(start, min(start + 2**14, stop)) * 10**9).cast(kind)

    write_ids(batches(2**15), tmp_path)  # compiles
    NodeIds.open(tmp_path).lookup(next(batches(2**14)))
    before = private_bytes()
    with watched_memory() as memory:
        write_ids(batches(count), tmp_path)
        found = NodeIds.open(tmp_path).lookup(next(batches(2**14)))
    assert found.tolist() == list(range(2**14))
    tables = sum(path.stat().st_size for path in tmp_path.glob("*.npy"))
    assert memory.peak_bytes - before < tables / 4
