import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from peg_core.errors import ArtifactMismatch, InputError
from peg_core.graph.ids.id_index import fill_slots, lookup_strings, num_slots
from peg_core.graph.ids.id_types import string_buffers
from peg_core.graph.ids.node_ids import NodeIds

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


@pytest.mark.parametrize("dictionary", [["b", "x", "a"], ["b", None, "a"], []])
@pytest.mark.parametrize("kind", [pa.int8(), pa.uint32()], ids=str)
def test_dictionary_encoded_strings_are_found(dictionary, kind):
    ids = NodeIds(pa.array(["a", "b"], pa.large_string()))
    codes = pa.array([0, 2, 1, None, 2] if dictionary else [None, None], kind)
    wanted = pa.DictionaryArray.from_arrays(codes, pa.array(dictionary, pa.string()))
    expected = [1, 0, -1, -1, 0] if dictionary else [-1, -1]
    assert ids.lookup(wanted).tolist() == expected
    chunks = pa.chunked_array([wanted, pa.array(["a", "q"]).dictionary_encode().cast(wanted.type)])
    assert ids.lookup(chunks).tolist() == [*expected, 0, -1]


@pytest.mark.parametrize("length", range(26))
def test_strings_that_differ_in_one_byte_are_told_apart(length):
    """Also where bytes of neighbours follow, and where all hashes are equal."""
    word = bytes(range(65, 65 + length))
    others = [word[:i] + b"~" + word[i + 1 :] for i in range(length)]
    values = [word, *others, word + b"\0"]
    ids = NodeIds(pa.array(values, pa.large_binary()))
    wanted = [*reversed(values), word + b"~", b"Z" + word]
    expected = [*reversed(range(len(values))), -1, -1]
    assert ids.lookup(pa.array(wanted, pa.large_binary())).tolist() == expected
    tables = ids.tables
    same = np.full(len(values), 7, dtype=np.uint64)
    slots = np.zeros((num_slots(len(values)), 2), dtype=np.uint64)
    fill_slots(slots, same, 0)
    found = lookup_strings(
        slots, tables["id_offsets"], tables["id_bytes"],
        *string_buffers(pa.array(wanted, pa.large_binary())),
        np.full(len(wanted), 7, dtype=np.uint64),
    )  # fmt: skip
    assert found.tolist() == expected


def test_hashes_are_those_that_stored_splits_were_made_by():
    """A mixed word of eight bytes after the other, the last one filled up, then the length."""

    def mix(key):
        key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        key = (key ^ (key >> 27)) * 0x94D049BB133111EB % 2**64
        return key ^ (key >> 31)

    def expected(text):
        state, full = 0x9E3779B97F4A7C15, len(text) // 8 * 8
        for start in range(0, full, 8):
            state = mix(state ^ int.from_bytes(text[start : start + 8], "little"))
        return mix((mix(state ^ int.from_bytes(text[full:], "little")) + len(text)) % 2**64)

    texts = [bytes(range(200, 200 + length)) for length in range(30)]
    assert NodeIds(pa.array(texts, pa.large_binary())).hashes().tolist() == [
        expected(text) for text in texts
    ]


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
