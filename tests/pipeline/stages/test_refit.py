import pytest

from pipeline.config.pipeline_config import PipelineConfig
from pipeline.stages import STAGES
from pipeline.stages.refit import passes_of


@pytest.mark.parametrize(
    ("best", "fractional", "passes"),
    [(0, False, 1.0), (4, False, 5.0), (2.25, False, 2.25), (3.0, True, 3.0)],
)
def test_epochs_are_counted_from_zero_but_passes_are_not(best, fractional, passes):
    assert passes_of(best, fractional=fractional) == passes


def config(tmp_path, **sections):
    graph = {"edges": str(tmp_path / "edges.parquet")}
    return PipelineConfig(name="r", store=str(tmp_path / "store"), graph=graph, **sections)


@pytest.mark.parametrize(
    ("sections", "takes_part"),
    [
        ({"train": {"refit": True}, "recommend": {}}, True),
        ({"train": {"refit": True}, "recommend": {"graph": "train"}}, False),
        ({"train": {"refit": True}}, False),
        ({"recommend": {}}, False),
    ],
)
def test_a_refit_takes_part_where_all_links_are_scored_with(tmp_path, sections, takes_part):
    found = config(tmp_path, **sections)
    for name in ("refit_split", "refit_encode", "refit"):
        assert STAGES[name].enabled(found) == takes_part


def test_no_stage_that_evaluates_reads_the_refit():
    read = {"refit", "refit_split", "refit_encode"}
    for name in ("embed", "calibrate", "negatives", "evaluate"):
        assert not read & set(STAGES[name].inputs)


def test_asking_for_a_refit_leaves_the_training_as_it_was(tmp_path):
    without, asked = config(tmp_path), config(tmp_path, train={"refit": True})
    for name in ("train", "evaluate", "embed_all", "recommend"):
        assert STAGES[name].settings(without) == STAGES[name].settings(asked)
