import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from peg_core.errors import InputError
from peg_core.graph.edge_table import list_row_groups
from peg_core.graph.node_features import input_features, load_features, write_features
from peg_core.graph.node_ids import NodeIds

IDS = NodeIds(pa.array([10, 20, 30]))


def write(tmp_path, **columns):
    pl.DataFrame(columns).write_parquet(tmp_path / "nodes.parquet", row_group_size=2)
    groups = list_row_groups([tmp_path / "nodes.parquet"], list(columns))
    counts = write_features(
        groups, id_column="id", column="x", node_ids=IDS, out=tmp_path / "features.npy"
    )
    return load_features(tmp_path), counts


def test_rows_come_in_index_order_and_missing_nodes_are_zero(tmp_path):
    features, counts = write(tmp_path, id=[30, 10], x=[[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(features, [[3, 4], [0, 0], [1, 2]])
    assert counts == {"feature_width": 2, "nodes_without_features": 1}


def test_integer_lists_are_indices_of_binary_features(tmp_path):
    features, _ = write(tmp_path, id=[10, 20, 30], x=[[0, 3], [], [1]])
    np.testing.assert_array_equal(features, [[1, 0, 0, 1], [0, 0, 0, 0], [0, 1, 0, 0]])


def test_nan_is_refused_with_its_row(tmp_path):
    with pytest.raises(InputError, match="NaN or infinity in row 0 of row group 1"):
        write(tmp_path, id=[10, 20, 30], x=[[1.0], [2.0], [float("nan")]])


def test_rows_of_different_length_are_refused(tmp_path):
    with pytest.raises(InputError, match="rows of 1 to 2 numbers"):
        write(tmp_path, id=[10, 20], x=[[1.0], [2.0, 3.0]])


def test_a_scalar_column_is_refused(tmp_path):
    with pytest.raises(InputError, match="needed is a list of numbers"):
        write(tmp_path, id=[10, 20], x=["a", "b"])


def test_without_features_the_degree_stands_in(two_communities):
    x = input_features(two_communities, None, 5, 8)
    np.testing.assert_allclose(x[:, 0], np.log1p(two_communities.degrees[5:8]), rtol=1e-6)
    np.testing.assert_array_equal(x[:, 1], 1)
