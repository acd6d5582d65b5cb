"""The columns of generated graphs."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import pipeline.generate.generated_tables
from peg_core.generators.edge_generator import CHUNK_ROWS
from peg_core.generators.random_graphs import GENERATORS, RecursiveMatrix, StochasticBlockModel
from peg_core.generators.synthetic_tables import sample_candidates
from pipeline.generate.generated_tables import candidate_batches, edge_batches, node_batches


def edges_of(generator, *, seed=0, string_ids=False, weights=False, time=False):
    return pl.from_arrow(
        edge_batches(generator, seed=seed, string_ids=string_ids, weights=weights, time=time)
    )


def nodes_of(model, *, seed=0, string_ids=False, features=16, noise=0.5):
    return pl.from_arrow(
        node_batches(model, seed=seed, string_ids=string_ids, features=features, noise=noise)
    )


def candidates_of(*, nodes, rows, seed=0, string_ids=False):
    return pl.from_arrow(
        candidate_batches(nodes=nodes, rows=rows, seed=seed, string_ids=string_ids)
    )


def test_edges_beyond_a_chunk_come_in_order():
    model = StochasticBlockModel(5000, 2 * CHUNK_ROWS + 10)
    expected = np.concatenate(list(model.chunks(seed=2)), axis=1)
    np.testing.assert_array_equal(edges_of(model, seed=2).to_numpy().T, expected)


def test_weights_and_times_are_added_as_columns():
    edges = edges_of(RecursiveMatrix(1000, 5000), weights=True, time=True)
    assert dict(edges.schema) == {
        "src": pl.Int64, "dst": pl.Int64, "weight": pl.Float32, "time": pl.Int64,
    }  # fmt: skip
    assert edges["weight"].min() > 0
    assert edges["time"].n_unique() > 4900


@pytest.mark.parametrize("name", ["sbm", "dcsbm"])
def test_node_table_holds_every_node_with_features_and_community(name, monkeypatch):
    monkeypatch.setattr(pipeline.generate.generated_tables, "NODE_BATCH_VALUES", 600 * 16)
    model = GENERATORS[name](1000, 5000, blocks=20)
    nodes = nodes_of(model, seed=9)
    assert dict(nodes.schema) == {"id": pl.Int64, "x": pl.List(pl.Float32), "label": pl.Int64}
    assert nodes["id"].to_list() == list(range(1000))
    assert nodes["x"].list.len().unique().to_list() == [16]

    label = nodes["label"].to_numpy()
    x = np.array(nodes["x"].to_list())
    centres = np.stack([x[label == k].mean(0) for k in range(label.max() + 1)])
    nearest = ((x[:, None] - centres) ** 2).sum(-1).argmin(1)
    assert np.mean(nearest == label) > 0.95

    edges = edges_of(model, seed=9)
    same = label[edges["src"].to_numpy()] == label[edges["dst"].to_numpy()]
    assert same.mean() == pytest.approx(0.8, abs=0.03)


def test_candidates_beyond_a_chunk_are_distinct_pairs(monkeypatch):
    monkeypatch.setattr(pipeline.generate.generated_tables, "CHUNK_ROWS", 1000)
    candidates = candidates_of(nodes=1000, rows=2500, seed=2)
    pairs = {frozenset(pair) for pair in candidates.rows()}
    assert len(candidates) == len(pairs) == 2500
    assert all(len(pair) == 2 for pair in pairs)
    expected = sample_candidates(nodes=1000, rows=2500, seed=2)
    np.testing.assert_array_equal(candidates.to_numpy().T, expected)


def test_string_ids_name_the_same_nodes_in_every_table():
    model = StochasticBlockModel(1000, 5000)
    for plain, text in (
        (edges_of(model), edges_of(model, string_ids=True)),
        (nodes_of(model).select("id"), nodes_of(model, string_ids=True).select("id")),
        (
            candidates_of(nodes=1000, rows=50),
            candidates_of(nodes=1000, rows=50, string_ids=True),
        ),
    ):
        assert text.equals(plain.select(pl.format("node-{}", pl.all()).name.keep()))
