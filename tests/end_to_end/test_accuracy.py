"""What `configs/reproduce/` reaches on one split of Cora; docs/results.md has the whole tables."""

from pathlib import Path

import pytest

from pipeline.config.loading import load_config
from pipeline.run.runner import run_pipeline

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.data]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """One for all: split, features and encodings are reused."""
    return tmp_path_factory.mktemp("accuracy")


@pytest.fixture
def test_auc(cluster, data_folder, display, store):
    def measure(config, *overrides):
        config = load_config(
            Path(f"configs/reproduce/{config}.yaml"),
            [
                f"store={store}",
                "repeats=1",
                f"graph.edges={data_folder}/cora/edges.parquet",
                f"graph.nodes={data_folder}/cora/nodes.parquet",
                "evaluate.heuristics=[common_neighbours]",
                *overrides,
            ],
        )
        return run_pipeline(config, display)["evaluate"].counts["test_auc"]

    return measure


def test_the_best_preset_on_whole_graphs_and_on_samples(test_auc):
    whole = test_auc("task1-cora")
    assert whole > 0.96
    sampled = test_auc(
        "task1-cora", "train.batching=sampled", "train.batch_size=256", "train.epochs=25"
    )
    assert abs(sampled - whole) < 0.01


def test_the_authors_variant(test_auc):
    assert test_auc("task1-cora-faithful") > 0.94
