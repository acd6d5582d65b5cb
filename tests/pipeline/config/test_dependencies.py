"""What artifacts depend on, of a section."""

from typing import Annotated

from pipeline.config.field_types import LATER, Section
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.stages import calibrate


class Inner(Section):
    old: int = 1
    new: Annotated[str | None, LATER] = None


class Outer(Section):
    inner: Inner = Inner()
    new: Annotated[int, LATER] = 7


def test_a_later_key_at_its_default_is_as_if_it_did_not_exist():
    assert Outer().dependencies() == {"inner": {"old": 1}}


def test_a_later_key_with_another_value_counts():
    found = Outer(inner=Inner(new="x"), new=8).dependencies()
    assert found == {"inner": {"old": 1, "new": "x"}, "new": 8}


def test_what_is_left_out_is_left_out():
    assert Outer(new=8).dependencies(exclude={"inner"}) == {"new": 8}
    assert Outer().dependencies(exclude={"new"}) == {"inner": {"old": 1}}


def test_artifacts_made_before_scores_could_be_stacked_are_still_found():
    plain = {"name": "demo", "store": "runs", "graph": {"edges": "edges.parquet"}}
    config = PipelineConfig(**plain, calibrate={"stack": False})
    assert "calibrate" not in config.dependencies()
    assert calibrate.settings(config) == {}
    stacked = PipelineConfig(**plain, calibrate={"stack": True})
    assert calibrate.settings(stacked) == {"stack": True}
    assert stacked.dependencies()["calibrate"] == {"stack": True}
