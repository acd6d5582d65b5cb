"""A finished run, opened from Python."""

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from peg_core.artifacts import Run
from peg_core.errors import InputError
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.progress import RunDisplay
from pipeline.run.runner import run_pipeline

pytestmark = [pytest.mark.ray, pytest.mark.slow]


@pytest.fixture(scope="module")
def run(cluster, small_inputs, tmp_path_factory):
    config = PipelineConfig(**small_inputs(tmp_path_factory.mktemp("run")))
    run_pipeline(config, RunDisplay(Console(quiet=True)))
    return Run.open(config.store)


def test_pairs_get_the_scores_that_the_run_wrote(run):
    table = run.scores().collect()
    known = table.filter(pl.col("score").is_not_null())
    found = run.score(known[:, 0], known[:, 1])
    np.testing.assert_allclose(found, known["score"], atol=1e-6)
    assert len(known) > 100


def test_a_list_of_ids_is_enough_and_unknown_ones_have_no_score(run):
    first = run.scores().filter(pl.col("score").is_not_null()).head(3).collect()
    source, target = first[:, 0].to_list(), first[:, 1].to_list()
    unknown = "nobody" if isinstance(source[0], str) else 10**12
    found = run.score([*source, unknown], [*target, target[0]])
    np.testing.assert_array_equal(np.isnan(found), [False, False, False, True])


def test_artifacts_of_a_run_belong_together(run):
    assert len(run.node_ids) == run.graph.num_nodes == len(run.embedded.embeddings)
    train = run.split.train_graph()
    held_out = sum(len(run.split.held_out(part).links[0]) for part in ("valid", "test"))
    assert train.num_edges + held_out == run.graph.num_edges
    assert run.model.network.spec.num_encodings == run.positions.num_encodings
    assert {"auc", "mrr"} <= set(run.metrics()["metric"])


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(InputError, match="holds no run"):
        Run.open(tmp_path)
