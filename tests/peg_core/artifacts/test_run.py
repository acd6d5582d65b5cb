"""Which model scores."""

from __future__ import annotations

import pytest

from peg_core.artifacts.manifest import Identity, Manifest
from peg_core.artifacts.run import Run
from peg_core.metrics.calibration import Calibration


@pytest.mark.parametrize("refitted", [False, True])
def test_the_model_that_embedded_all_edges_scores(refitted, tmp_path):
    inputs = {"train": "1", "refit": "2"} if refitted else {"train": "1"}
    for stage in ("train", "refit", "calibrate", "embed_all"):
        folder = tmp_path / "current" / stage
        folder.mkdir(parents=True)
        identity = Identity(stage, 1, {}, inputs if stage == "embed_all" else {}, {})
        if stage == "calibrate":
            (folder / "seed-3").mkdir()
            Calibration(1.0, 0.5, 0.5).save(folder / "seed-3")
        manifest = Manifest(identity, "f", "then", "now", 0.0, 0, {}, details={"best_seed": 3})
        manifest.write(folder)
    model = Run.open(tmp_path).scoring_model
    expected = "refit" if refitted else "train"
    assert model.folder == tmp_path / "current" / expected / "seed-3"
    assert model.calibration == Calibration(1.0, 0.5, 0.5)
