"""Asking for reasons changes nothing that was made before."""

from pipeline.config.pipeline_config import PipelineConfig
from pipeline.stages import STAGES

BASE = {"name": "a", "store": "s", "graph": {"edges": "e.parquet"}}


def test_reasons_are_a_stage_of_their_own_that_changes_no_other():
    plain = PipelineConfig(**BASE, score={"candidates": "c.parquet"})
    asked = PipelineConfig(**BASE, score={"candidates": "c.parquet", "explain": "top"})
    assert not STAGES["explain"].enabled(plain)
    assert STAGES["explain"].enabled(asked)
    for name, stage in STAGES.items():
        if name not in ("explain", "report"):
            assert stage.settings(plain) == stage.settings(asked)
    # what stores were made with before there was such a key
    assert "explain" not in STAGES["score"].settings(plain)["score"]
    assert "explain" not in STAGES["report"].settings(plain)["config"]["score"]
