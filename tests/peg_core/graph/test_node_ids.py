import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from peg_core.errors import ArtifactMismatch, InputError
from peg_core.graph.node_ids import NodeIds

integers = st.integers(-(2**63), 2**63 - 1)
dense_integers = st.integers(-50, 50)


@given(
    st.one_of(
        st.tuples(st.just(pa.int64()), st.sets(integers, min_size=1), st.lists(integers)),
        st.tuples(
            st.just(pa.int64()), st.sets(dense_integers, min_size=1), st.lists(dense_integers)
        ),
        st.tuples(st.just(pa.large_string()), st.sets(st.text(), min_size=1), st.lists(st.text())),
    )
)
def test_lookup_agrees_with_a_dictionary(case):
    kind, ids, wanted = case
    values = sorted(ids)
    wanted = [*wanted, *values, None]
    index = {value: row for row, value in enumerate(values)}
    found = NodeIds(pa.array(values, kind)).lookup(pa.array(wanted, kind))
    assert found.tolist() == [index.get(value, -1) for value in wanted]


def test_ids_may_stand_in_any_order():
    ids = NodeIds(pa.array([40, 10, 10**15, 20]))
    assert ids.lookup(pa.array([10, 40, 10**15, 7])).tolist() == [1, 0, 2, -1]


def test_dictionary_encoded_strings_are_found():
    ids = NodeIds(pa.array(["a", "b"], pa.large_string()))
    assert ids.lookup(pa.array(["b", "a", "b"]).dictionary_encode()).tolist() == [1, 0, 1]


def test_strings_against_integer_ids_are_refused_naming_both():
    with pytest.raises(ArtifactMismatch, match="found string, needed int64"):
        NodeIds(pa.array([1, 2])).lookup(pa.array(["1"]))


def test_saved_ids_come_back_in_order(tmp_path):
    NodeIds(pa.array(["x", "a"], pa.large_string())).save(tmp_path)
    again = NodeIds.open(tmp_path)
    assert again.take(np.array([1, 0, 1])).to_pylist() == ["a", "x", "a"]


def test_a_folder_without_ids_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"no Parquet file at .*node_ids.parquet"):
        NodeIds.open(tmp_path)


@pytest.mark.parametrize("values", [[5, -7, 2**40], ["b", "a", ""], [b"x", b"", b"\x00"]])
def test_a_nodes_hash_depends_on_its_id_alone(values):
    first, second = NodeIds(pa.array(values)), NodeIds(pa.array(values[::-1]))
    assert first.hashes().tolist() == second.hashes()[::-1].tolist()
    assert len(set(first.hashes().tolist())) == 3
