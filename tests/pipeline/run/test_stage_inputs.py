"""What a stage is given to score with."""

from peg_core.metrics.calibration import Calibration
from pipeline.run.stage_inputs import StageInputs
from workers.artifact_ref import ArtifactFolder, ArtifactRef

STAGES = ("ingest", "split", "encode", "train", "embed")


def test_after_calibration_every_scorer_knows_it(tmp_path):
    refs = {name: ArtifactRef.of_folder(tmp_path / name, ArtifactFolder) for name in STAGES}
    assert StageInputs(refs).train_graph_scorer(3).calibration is None
    refs["calibrate"] = ArtifactRef.of_folder(tmp_path / "calibrate", ArtifactFolder)
    found = StageInputs(refs).train_graph_scorer(3).calibration
    assert found == refs["calibrate"].at(Calibration, "seed-3")
    assert found.folder == tmp_path / "calibrate" / "seed-3"
