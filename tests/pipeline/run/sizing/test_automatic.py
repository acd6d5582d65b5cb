"""What `auto` becomes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peg_core.heuristics import HEURISTICS
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.sizing.automatic import GraphExtent, resolve
from pipeline.stages import STAGES

BASE = {"name": "a", "store": "s", "graph": {"edges": "e.parquet"}}
# How the settings read before anything was automatic: existing stores have them in their manifests.
BEFORE = {"split": {"folds": 10}, "train": {"epochs": 50, "patience": 20, "batch_size": 8192}}
SMALL = GraphExtent(nodes=300_000, edges=1_176_470)
LARGE = GraphExtent(nodes=300_000, edges=3_000_000)
HUGE = GraphExtent(nodes=10_000_000, edges=100_000_000)


def config(**sections):
    return PipelineConfig(**BASE, **sections)


def values(config, extent):
    return {choice.key: choice.value for choice in resolve(config, extent)[1]}


def test_up_to_a_million_training_links_fingerprints_are_those_of_before():
    found, _ = resolve(config(), SMALL)
    split = STAGES["split"].settings(found)["split"]
    train = STAGES["train"].settings(found)["train"]
    assert split["folds"] == BEFORE["split"]["folds"]
    assert {name: train[name] for name in BEFORE["train"]} == BEFORE["train"]
    assert train["fan_outs"] is None
    assert not train.keys() & {"links", "min_gain", "validate_links", "validate_pairs"}
    assert found.encodings == config().encodings
    asked = config(split={"folds": 10}, train={"epochs": 50, "patience": 20, "batch_size": 8192})
    assert STAGES["train"].settings(resolve(asked, SMALL)[0])["train"] == train


def test_a_baseline_trains_without_folds_unless_asked_for():
    for extent in (SMALL, HUGE):
        assert values(config(model={"kind": "vgae"}), extent)["split.folds"] == 1
    asked = config(model={"kind": "vgae"}, split={"folds": 7}, train={"epochs": 3})
    found, _ = resolve(asked, SMALL)
    assert (found.split.folds, found.train.epochs) == (7, 3)
    chosen = values(config(model={"kind": "vgae"}), SMALL)
    assert (chosen["train.epochs"], chosen["train.patience"]) == (100, 50)


def test_a_large_graph_is_trained_by_links():
    found, _ = resolve(config(), LARGE)
    links = 0.85 * LARGE.edges
    assert found.train.links == pytest.approx(2e6 * (links / 1e6) ** 0.5, rel=0.02)
    assert found.train.links < 2 * links  # less than two epochs, where fifty were the default
    assert found.train.validate_links < links / 10  # several times within the first epoch
    assert (found.train.patience, found.train.min_gain) == (5, 1e-3)
    assert (found.split.folds, found.encodings[0].parameters["dimensions"]) == (4, 64)
    # what it became is part of the fingerprint
    assert STAGES["train"].settings(found)["train"]["links"] == found.train.links
    assert STAGES["encode"].settings(found)["encodings"][0]["dimensions"] == 64


def test_pagerank_is_left_out_where_it_is_too_coarse_unless_asked_for():
    small, _ = resolve(config(), SMALL)
    assert STAGES["evaluate"].settings(small) == STAGES["evaluate"].settings(
        config(evaluate={"heuristics": list(HEURISTICS)})
    )
    chosen = values(config(), LARGE)["evaluate.heuristics"]
    assert set(HEURISTICS) - set(chosen) == {"personalised_pagerank"}
    asked = config(evaluate={"heuristics": ["personalised_pagerank"]})
    assert resolve(asked, LARGE)[0].evaluate.heuristics == ["personalised_pagerank"]


def test_a_huge_graph_takes_smaller_steps_and_fewer_encodings():
    found, _ = resolve(config(), HUGE)
    assert found.split.folds == 2
    assert found.encodings[0].parameters["dimensions"] == 32
    assert found.train.fan_outs == [10, 5]
    # 4 ends of a link and a non-link, 10 neighbours of each, 5 of each of those
    held = found.train.batch_size * 4 * (1 + 10 + 50) * (128 + 32) * 4
    assert held <= 1e9 < 2 * held


def test_explicit_values_win_at_any_size():
    asked = config(
        split={"folds": 7},
        encodings=[{"kind": "le", "dimensions": 100}, {"kind": "deepwalk"}],
        train={
            "links": 123_456,
            "patience": 9,
            "min_gain": 0.01,
            "validate_links": 1000,
            "validate_pairs": 50,
            "batch_size": 77,
            "fan_outs": [3, 3],
        },
        evaluate={"heuristics": list(HEURISTICS)},
    )
    found, choices = resolve(asked, HUGE)
    assert found.split == asked.split
    assert found.train == asked.train.model_copy(update={"epochs": 50})
    assert found.encodings[0] == asked.encodings[0]
    assert [choice.key for choice in choices] == ["encodings.1.dimensions", "train.epochs"]


def test_asking_for_epochs_means_no_budget():
    found, _ = resolve(config(train={"epochs": 3}), HUGE)
    assert (found.train.links, found.train.epochs, found.train.patience) == (None, 3, 20)
    assert found.train.min_gain == 0


def test_a_budget_on_a_small_graph_is_validated_by_links():
    found, _ = resolve(config(train={"links": 1000}), GraphExtent(100, 1000))
    assert (found.train.links, found.train.validate_links, found.train.patience) == (1000, 50, 5)


@given(
    edges=st.integers(0, 10**11), nodes=st.integers(0, 10**10), folds=st.sampled_from([3, "auto"])
)
def test_resolving_again_changes_nothing_and_the_cluster_does_not_matter(edges, nodes, folds):
    extent = GraphExtent(nodes, edges)
    asked = config(split={"folds": folds})
    found, choices = resolve(asked, extent)
    assert resolve(found, extent) == (found, [])
    assert all(choice.reason for choice in choices)
    elsewhere = config(split={"folds": folds}, cluster={"workers": 64, "task_memory": "500MB"})
    assert resolve(elsewhere, extent)[1] == choices


@given(fewer=st.integers(0, 10**10), more=st.integers(0, 10**10))
def test_the_budget_grows_slower_than_the_graph(fewer, more):
    fewer, more = sorted([fewer, more])
    small, large = (
        values(config(), GraphExtent(10**6, edges)).get("train.links") for edges in (fewer, more)
    )
    if small is not None:
        assert small <= large
        assert large / small <= max(1.1, more / max(fewer, 1))
