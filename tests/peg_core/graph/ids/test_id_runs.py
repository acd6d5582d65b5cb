from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peg_core.errors import PegError
from peg_core.graph.ids import id_runs
from peg_core.graph.ids.id_runs import (
    IdRange,
    cut_ids,
    merge_parts,
    merged_ids,
    number_ids,
    write_distinct,
    write_merged,
)
from peg_core.graph.ids.node_ids import NodeIds

KINDS = {
    pa.int64(): st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-20, 20)),
    pa.uint64(): st.one_of(st.integers(0, 2**64 - 1), st.integers(2**63 - 9, 2**63 + 9)),
    pa.large_string(): st.text(max_size=3),
    pa.large_binary(): st.binary(max_size=3),
}


def number_by_range(folder, parts, ids_per_range, before=None):
    """What the tasks do, one after the other; returns how many ids every range read and kept."""
    cuts, files, sizes = folder / "cuts.parquet", [], []
    for number in range(cut_ids(parts, ids_per_range, cuts)):
        ids = merge_parts(parts, IdRange(cuts, number), before=before)
        files.append(folder / f"{number}.parquet")
        sizes.append(write_merged(ids, files[-1]))
    number_ids(merged_ids(files), sum(sizes), folder, before=before)
    return sizes


@pytest.mark.parametrize("kind", KINDS, ids=str)
@settings(max_examples=25)
@given(data=st.data())
def test_ranges_number_all_ids_in_sorted_order_after_those_known_before(kind, data):
    values = st.lists(KINDS[kind], min_size=1, max_size=30)
    drawn = data.draw(st.lists(values, min_size=1, max_size=4))
    known = data.draw(st.none() | st.lists(KINDS[kind], min_size=1, max_size=9, unique=True))
    before = None if known is None else NodeIds(pa.array(known, kind))
    new = sorted({value for part in drawn for value in part} - set(known or []))
    with TemporaryDirectory() as name, patch.multiple(id_runs, GROUP_IDS=3):
        folder = Path(name)
        parts = [folder / f"part-{number}.parquet" for number in range(len(drawn))]
        for part, ids in zip(parts, drawn, strict=True):
            assert write_distinct([pa.array(ids, kind)], part) == len(set(ids))
        number_by_range(folder, parts, data.draw(st.integers(1, 12)), before)
        found = NodeIds.open(folder)
        assert found.values.to_pylist() == [*(known or []), *new]
        wanted = pa.array([*(known or []), *new, None], kind)
        assert found.lookup(wanted).tolist() == [*range(len(found)), -1]


def test_ranges_are_of_about_the_size_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(id_runs, "GROUP_IDS", 10)
    parts = [tmp_path / f"part-{number}.parquet" for number in range(3)]
    for number, part in enumerate(parts):
        write_distinct([pa.array(range(number, 3000, 3))], part)
    sizes = number_by_range(tmp_path, parts, 300)
    assert sum(sizes) == 3000
    assert len(sizes) == 10
    assert max(sizes) <= 300 + 2 * 3 * 10  # a group of every part at both ends


def test_ids_that_are_in_all_parts_make_ranges_by_what_is_read(tmp_path, monkeypatch):
    """A range is bounded by the ids that it reads, not by the distinct ones that it writes."""
    monkeypatch.setattr(id_runs, "GROUP_IDS", 10)
    parts = [tmp_path / f"part-{number}.parquet" for number in range(4)]
    for part in parts:
        write_distinct([pa.array(range(1000))], part)
    sizes = number_by_range(tmp_path, parts, 400)
    assert sum(sizes) == 1000
    assert max(sizes) <= 100 + 2 * 10


def test_more_nodes_than_keys_can_hold_are_refused_before_anything_is_written(tmp_path):
    with pytest.raises(PegError, match=r"has 2,147,483,648 nodes, at most 2,147,483,647 are"):
        number_ids(iter(()), 2**31, tmp_path)
    assert not list(tmp_path.iterdir())
