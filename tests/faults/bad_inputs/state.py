"""A finished store, damaged."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.faults.bad_inputs import damage
from tests.faults.bad_inputs.damage import Damage
from tests.faults.bad_inputs.kind import ACCEPTED, REFUSED, REPAIRED, Group, Make
from tests.faults.bad_inputs.place import Place

state = Group("state", command="peg run CONFIG", says="damaged")
HISTORY = {"command": "peg history STORE", "says": r"runs-.*\.parquet"}
LIST = {"command": "peg schedule list STORE", "says": r"nightly\.json"}


def in_artifact(stage: str, file: str, how: Damage) -> Make:
    """A file of a finished stage is damaged."""

    def make(place: Place) -> None:
        found = place.artifact(stage) / file
        how(found)
        place.damaged.append(found.relative_to(place.store))

    return make


# stage, file, damage, and the stage that reads it next
ARTIFACTS: list[tuple[str, str, Damage, str]] = [
    ("ingest", "indices.npy", damage.cut, "split"),
    ("ingest", "indptr.npy", damage.flip, "split"),
    ("ingest", "node_ids.parquet", damage.cut, "score"),
    ("ingest", "node_ids.parquet", damage.remove, "score"),
    ("ingest", "features.npy", damage.empty, "features"),
    ("features", "features.npy", damage.flip, "train"),
    ("features", "transform.safetensors", damage.cut, "train"),
    ("split", "links.npy", damage.cut, "train"),
    ("split", "valid.parquet", damage.garbage, "train"),
    ("split", "test.parquet", damage.remove, "evaluate"),
    ("encode", "encoding-0/all.npy", damage.cut, "train"),
    ("encode", "encoding-0/all.npy", damage.become_a_folder, "train"),
    ("train", "seed-0/weights.safetensors", damage.cut, "embed"),
    ("train", "seed-0/weights.safetensors", damage.flip, "embed"),
    ("train", "seed-0/weights.safetensors", damage.empty, "embed"),
    ("train", "seed-0/model.json", damage.cut, "embed"),
    ("train", "seed-0/model.json", damage.become_a_list, "embed"),
    ("train", "seed-0/recipe.json", damage.empty, "embed"),
    ("train", "epochs.parquet", damage.cut, "report"),
    ("embed", "seed-0/layer-1.npy", damage.flip, "evaluate"),
    ("calibrate", "seed-0/calibration.json", damage.cut, "score"),
    ("calibrate", "seed-0/calibration.json", damage.become_a_list, "score"),
    ("calibrate", "seed-0/calibration.json", damage.remove, "score"),
    ("evaluate", "metrics.parquet", damage.cut, "report"),
    ("encode_all", "encoding-0/all.npy", damage.remove, "embed_all"),
    ("embed_all", "layer-1.npy", damage.cut, "score"),
    ("embed_all", "layer-1.npy", damage.flip, "score"),
    ("embed_all", "components.npy", damage.garbage, "score"),
]
WORDS = {
    damage.cut: "cut off",
    damage.flip: "with a flipped bit",
    damage.remove: "missing",
    damage.empty: "without bytes",
    damage.garbage: "overwritten",
    damage.become_a_folder: "a folder",
    damage.become_a_list: "of another type",
}
for stage, file, how, reader in ARTIFACTS:
    state.add(
        f"{stage}: {file} {WORDS[how]}",
        in_artifact(stage, file, how),
        REPAIRED,
        command=f"peg run CONFIG --from {reader}",
    )
for how in (damage.cut, damage.flip, damage.remove, damage.empty):
    state.add(
        f"score: part-000000.parquet {WORDS[how]}",
        in_artifact("score", "part-000000.parquet", how),
        REPAIRED,
    )
state.add(
    "report: report.html missing", in_artifact("report", "report.html", damage.remove), REPAIRED
)
SCORE = "peg score --run CONFIG --candidates CANDIDATES --out OUT"
for stage, file in (
    ("train", "seed-0/weights.safetensors"),
    ("embed_all", "layer-1.npy"),
    ("calibrate", "seed-0/calibration.json"),
):
    state.add(
        f"{stage}: {file} cut off, and pairs to score",
        in_artifact(stage, file, damage.cut),
        REPAIRED,
        REFUSED,
        command=SCORE,
        says=f"damaged|{Path(file).name}",
    )


def edit_manifest(edit: Callable[[dict[str, Any]], Any]) -> Damage:
    """Change the decoded manifest."""

    def change(file: Path) -> None:
        values = json.loads(file.read_text())
        edit(values)
        file.write_text(json.dumps(values))

    return change


MANIFESTS: dict[str, Damage] = {
    "without bytes": damage.empty,
    "cut off": damage.cut,
    "overwritten": damage.garbage,
    "of another type": damage.become_a_list,
    "a folder": damage.become_a_folder,
    "null": lambda file: file.write_text("null") and None,
    "without its identity": edit_manifest(lambda values: values.pop("identity")),
}
for words, how in MANIFESTS.items():
    for command in ("run", "plan", "status"):
        state.add(
            f"split: manifest.json {words}" + (f", {command}" if command != "run" else ""),
            in_artifact("split", "manifest.json", how),
            *((REPAIRED, REFUSED) if command == "run" else (ACCEPTED, REFUSED)),
            command=f"peg {command} CONFIG",
            says=r"damaged|manifest\.json|not done|missing|unreadable",
        )
for command in ("run", "plan", "status"):
    state.add(
        f"split: manifest.json with text for a number, {command}",
        in_artifact(
            "split", "manifest.json", edit_manifest(lambda old: old.update(seconds="long"))
        ),
        ACCEPTED,
        REFUSED,
        command=f"peg {command} CONFIG",
        says=r"damaged|manifest\.json",
        warns=False,
    )
state.add(
    "split: manifest.json with a key of a newer version",
    in_artifact(
        "split", "manifest.json", edit_manifest(lambda values: values.update(colour="red"))
    ),
    ACCEPTED,
    REFUSED,
    REPAIRED,
    says="",
)


def marker(stage: str, name: str, how: Damage) -> Make:
    """A run stopped before its manifest, and the mark of a finished shard is damaged."""

    def make(place: Place) -> None:
        folder = place.artifact(stage)
        (folder / "manifest.json").unlink()
        how(folder / "done" / name)

    return make


for how in (damage.empty, damage.cut, damage.garbage, damage.become_a_list):
    state.add(
        f"score: mark of a shard {WORDS[how]}",
        marker("score", "part-000000.json", how),
        REPAIRED,
        REFUSED,
        says=r"damaged|part-000000\.json|not done|artifact was removed",
    )


def unfinished(stage: str, file: str, how: Damage) -> Make:
    """A run stopped before its manifest, and a file that it goes on from is damaged."""

    def make(place: Place) -> None:
        folder = place.artifact(stage)
        (folder / "manifest.json").unlink()
        shutil.rmtree(folder / "done")
        in_artifact(stage, file, how)(place)

    return make


state.add(
    "train: seed-0/checkpoint.safetensors cut off, run unfinished",
    unfinished("train", "seed-0/checkpoint.safetensors", damage.cut),
    REPAIRED,
    REFUSED,
    says="damaged|checkpoint.safetensors|artifact was removed",
)
# It feeds the progress bar, and is written again in a moment: nobody has to know.
state.add(
    "train: seed-0/progress.json cut off, run unfinished",
    unfinished("train", "seed-0/progress.json", damage.cut),
    ACCEPTED,
    warns=False,
)
