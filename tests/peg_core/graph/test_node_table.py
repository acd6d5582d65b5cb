import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from peg_core.errors import InputError
from peg_core.graph import node_table
from peg_core.graph.edge_table import list_row_groups
from peg_core.graph.ids.node_ids import NodeIds
from peg_core.graph.node_features import load_features
from peg_core.graph.node_table import KindTable, NodeColumns, write_node_tables

IDS = NodeIds(pa.array([10, 20, 30]))


def write(folder, table, node_ids=IDS, **names):
    """Write a node table in row groups of two and read it in index order."""
    columns = NodeColumns(**names)
    table = table if isinstance(table, pa.Table) else pl.DataFrame(table).to_arrow()
    pq.write_table(table, folder / "nodes.parquet", row_group_size=2)
    groups = list_row_groups([folder / "nodes.parquet"], columns.names)
    counts = write_node_tables([KindTable(groups, columns, node_ids)], folder)
    return load_features(folder), counts


def refuse(folder, table, message, **names):
    with pytest.raises(InputError, match=message):
        write(folder, table, **names)
    assert not (folder / "features.npy").exists()


def test_rows_come_in_index_order_and_missing_nodes_are_zero(tmp_path):
    table = {"id": [30, 10], "x": [[1.0, 2.0], [3.0, 4.0]]}
    features, counts = write(tmp_path, table, features=["x"])
    np.testing.assert_array_equal(features, [[3, 4], [0, 0], [1, 2]])
    assert features.dtype == np.float32
    assert counts == {"nodes_without_row": 1, "feature_width": 2}


@pytest.mark.parametrize("kind", [pa.list_(pa.int8()), pa.large_list(pa.uint64())])
def test_integer_lists_are_indices_of_binary_features(tmp_path, kind):
    x = pa.array([[0, 3], [], [1]], kind)
    features, _ = write(tmp_path, pa.table({"id": [10, 20, 30], "x": x}), features=["x"])
    np.testing.assert_array_equal(features, [[1, 0, 0, 1], [0, 0, 0, 0], [0, 1, 0, 0]])


def test_a_width_that_is_given_counts_features_that_no_node_has(tmp_path):
    table = {"id": [10, 20], "x": [[0, 3], [1]]}
    features, counts = write(tmp_path, table, features=["x"], feature_width=7)
    assert features.shape == (3, 7)
    assert features.sum() == 3
    assert counts["feature_width"] == 7


def test_columns_stand_side_by_side_in_the_order_they_are_named(tmp_path):
    table = {
        "id": [30, 20, 10],
        "partner": [True, False, True],
        "days": [3, 2, 1],
        "x": [[0.5, 0.25], [1.5, 1.25], [2.5, 2.25]],
        "tags": [[1], [], None],
    }
    features, _ = write(tmp_path, table, features=["tags", "days", "x", "partner"])
    expected = [[0, 0, 1, 2.5, 2.25, 1], [0, 0, 2, 1.5, 1.25, 0], [0, 1, 3, 0.5, 0.25, 1]]
    np.testing.assert_array_equal(features, expected)


@pytest.mark.parametrize("kind", [pa.list_(pa.float16()), pa.list_(pa.float64(), 2)])
def test_lists_of_any_float_are_dense_rows(tmp_path, kind):
    x = pa.array([np.float16(v) for v in range(6)], kind.value_type)
    rows = (
        pa.FixedSizeListArray.from_arrays(x, 2)
        if pa.types.is_fixed_size_list(kind)
        else pa.ListArray.from_arrays([0, 2, 4, 6], x)
    )
    features, _ = write(tmp_path, pa.table({"id": [10, 20, 30], "x": rows}), features=["x"])
    np.testing.assert_array_equal(features, np.arange(6).reshape(3, 2))


@pytest.mark.parametrize("values", [1, 7, 2**22])
def test_the_size_of_a_batch_does_not_change_the_result(tmp_path, monkeypatch, values):
    rng = np.random.default_rng(0)
    ids = rng.permutation(50)
    x = rng.normal(size=(50, 3)).astype(np.float32)
    table = pl.DataFrame({"id": ids, "x": x.tolist()}).with_columns(pl.col("id").alias("label"))
    monkeypatch.setattr(node_table, "BATCH_VALUES", values)
    monkeypatch.setattr(node_table, "ID_BATCH_ROWS", values)
    table.write_parquet(tmp_path / "nodes.parquet", row_group_size=20)
    columns = NodeColumns(features=["x"], label="label")
    groups = list_row_groups([tmp_path / "nodes.parquet"], columns.names)
    write_node_tables([KindTable(groups, columns, NodeIds(pa.array(range(50))))], tmp_path)
    np.testing.assert_array_equal(load_features(tmp_path)[ids], x)
    assert pl.read_parquet(tmp_path / "node_table.parquet")["label"].to_list() == list(range(50))


def test_labels_and_splits_come_in_index_order_and_missing_ones_are_null(tmp_path):
    table = {
        "id": pa.array([30, 10]),
        "class": pa.array([7, None], pa.int8()),
        "part": pa.array(["test", "train"]).dictionary_encode(),
    }
    _, counts = write(tmp_path, pa.table(table), label="class", split="part")
    kept = pl.read_parquet(tmp_path / "node_table.parquet")
    assert kept.to_dict(as_series=False) == {
        "label": [None, None, 7],
        "split": ["train", None, "test"],
    }
    assert counts == {"nodes_without_row": 1, "labelled_nodes": 1}
    assert not (tmp_path / "features.npy").exists()


def test_one_column_may_be_feature_and_label(tmp_path):
    table = {"id": [10, 20], "days": [4, 5]}
    features, _ = write(tmp_path, table, features=["days"], label="days")
    np.testing.assert_array_equal(features, [[4], [5], [0]])


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (
            [[1.0], [2.0], [float("nan")]],
            "'x' of .*nodes.parquet holds NaN .* row 0 of row group 1",
        ),
        ([[1.0], [None], [2.0]], "NaN or infinity in row 1 of row group 0"),
        ([[1.0], [1e300], [2.0]], "NaN or infinity in row 1 of row group 0"),
        ([[1.0], None, [2.0]], r"holds 1 null\(s\), the first in row 1 of row group 0"),
        ([None, [1.0], [2.0]], r"holds 1 null\(s\), the first in row 0 of row group 0"),
        ([[1.0], [2.0], [3.0, 4.0]], "another number of values than the 1 .* row 0 of row group 1"),
        ([[], [], []], "empty list|needed is a number or a list of numbers"),
        ([[0], [1, -2], [1]], r"an index outside 0 \.\. 1 in row 1 of row group 0"),
        ([[0], [1], [None]], r"an index outside 0 \.\. 1 in row 0 of row group 1"),
        ([1.0, None, 2.0], r"holds 1 null\(s\), the first in row 1 of row group 0"),
        ([1.0, 2.0, float("inf")], "NaN or infinity in row 0 of row group 1"),
        (["a", "b", "c"], "'x' of .* is of type .*string.*, needed is a number or a list of num"),
        ([["a"], ["b"], ["c"]], "needed is a number or a list of numbers"),
    ],
)
def test_bad_features_are_refused_with_column_and_row(tmp_path, x, message):
    refuse(tmp_path, {"id": [10, 20, 30], "x": x}, message, features=["x"])


def test_an_index_beyond_the_given_width_is_refused(tmp_path):
    table = {"id": [10, 20, 30], "x": [[0], [1], [5]]}
    message = r"an index outside 0 \.\. 4 in row 0 of row group 1; .*raise `graph.feature_width`"
    refuse(tmp_path, table, message, features=["x"], feature_width=5)


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.large_list(pa.uint64())])
def test_an_index_that_asks_for_too_many_features_is_named(tmp_path, kind):
    x = pa.array([[0], [1], None, [3, 2**40]], kind)
    table = pa.table({"id": [10, 20, 30, 40], "x": x})
    message = (
        r"'x' of .*nodes\.parquet holds the feature index 1,099,511,627,776, at most 999,999 is "
        r"possible in row 1 of row group 1; .*`graph\.feature_width`"
    )
    node_ids = NodeIds(pa.array([10, 20, 30, 40]))
    refuse(tmp_path, table, message, node_ids=node_ids, features=["x"])


def test_columns_of_one_name_are_refused(tmp_path):
    x = pa.array([1.0, 2.0])
    table = pa.Table.from_arrays([pa.array([10, 20]), x, x], names=["id", "x", "x"])
    refuse(tmp_path, table, r"nodes\.parquet has 2 columns named 'x', one is", features=["x"])


def test_a_width_for_dense_rows_of_another_width_is_refused(tmp_path):
    message = r"has 2 number\(s\) a row, `graph.feature_width` is 3"
    table = {"id": [10], "x": [[1.0, 2.0]]}
    refuse(tmp_path, table, message, features=["x"], feature_width=3)


def test_an_id_with_two_rows_is_named(tmp_path):
    table = {"id": [10, 30, 20, 30, 10], "x": [[1.0]] * 5}
    message = r"'id' of .* holds the id 10 a second time, in row 0 of row group 2; .* 2 such id"
    refuse(tmp_path, table, message, features=["x"])


def test_a_null_id_is_refused(tmp_path):
    table = {"id": [10, 20, None], "x": [[1.0]] * 3}
    message = r"'id' of .* holds 1 null\(s\), the first in row 0 of row group 1"
    refuse(tmp_path, table, message, features=["x"])


def test_lists_as_labels_are_refused(tmp_path):
    refuse(tmp_path, {"id": [10], "y": [[1]]}, "'y' of .* needed is a number, a boo", label="y")


def test_files_that_disagree_about_a_column_are_refused(tmp_path):
    for name, x in (("a", [[1.0]]), ("b", [[1]])):
        pl.DataFrame({"id": [10], "x": x}).write_parquet(tmp_path / f"{name}.parquet")
    groups = list_row_groups([tmp_path / "a.parquet", tmp_path / "b.parquet"], ["id", "x"])
    node_ids = NodeIds(pa.array([10]))
    with pytest.raises(InputError, match=r"'id' of .*b.parquet holds the id 10 a second time"):
        write_node_tables([KindTable(groups, NodeColumns(), node_ids)], tmp_path)
    pl.DataFrame({"id": [20], "x": [[1]]}).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"b.parquet is of type .*one kind everywhere \(it is"):
        write_node_tables([KindTable(groups, NodeColumns(features=["x"]), IDS)], tmp_path)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "column", "shape"),
    [("cora", "x_indices", (2_708, 1_433)), ("pubmed", "x", (19_717, 500))],
)
def test_real_tables_have_the_sums_that_polars_finds(tmp_path, data_folder, name, column, shape):
    file = data_folder / name / "nodes.parquet"
    columns = NodeColumns(features=[column], label="label", split="split")
    table = pl.read_parquet(file)
    groups = list_row_groups([file], columns.names)
    counts = write_node_tables(
        [KindTable(groups, columns, NodeIds(table["id"].to_arrow()))], tmp_path
    )
    features = load_features(tmp_path)
    assert features.shape == shape
    assert counts["labelled_nodes"] == shape[0]
    ones = column == "x_indices"
    per_node = table[column].list.len() if ones else table[column].list.sum()
    np.testing.assert_allclose(features.sum(axis=1), per_node, rtol=1e-5)
    if ones:
        used = table[column].explode().value_counts().sort(column)
        np.testing.assert_array_equal(features.sum(axis=0)[used[column]], used["count"])
        assert features.sum() == used["count"].sum()
    kept = pl.read_parquet(tmp_path / "node_table.parquet")
    assert kept["label"].equals(table["label"])
    assert kept["split"].value_counts(sort=True).equals(table["split"].value_counts(sort=True))
