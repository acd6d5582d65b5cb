"""New edges, the same model: encode, embed and score again without training."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, TextIO

from peg_core.artifacts.manifest import Manifest
from peg_core.artifacts.trained_model import Training
from peg_core.errors import ConfigError, InputError
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.config.result_sections import RefreshConfig
from pipeline.run.plan import Step, differences, make_plan
from pipeline.run.progress import RunDisplay
from pipeline.run.refresh_stages import Baseline, Earlier, RefreshStages
from pipeline.run.runner import lookups, run_pipeline, run_plan
from pipeline.run.sizing.automatic import resolve
from pipeline.run.sizing.graph_extent import counted_extent
from pipeline.stages import STAGES
from pipeline.store.local_store import AnyStore, open_store

# A model that was trained with these settings can be kept.
SETTINGS_OF = ("features", "split", "encode", "train")
FIRST = "run `peg run` once first"
# Locations may change; what is read there may not.
LOCATIONS = ("edges", "nodes")


@dataclass(frozen=True)
class Refresh:
    """What a refresh did.

    Args:
        manifests: Of all stages, those of the new training where there was one.
        drift: The content of ``drift.json``; None where the graph is that of the training.
        passed: Limits that were passed, a sentence each.
        retrained: Whether a training followed.
    """

    manifests: dict[str, Manifest]
    drift: dict[str, Any] | None
    passed: list[str]
    retrained: bool


def run_refresh(
    config: PipelineConfig,
    display: RunDisplay,
    *,
    events: TextIO | None = None,
    anyway: bool = False,
) -> Refresh:
    """Score the grown graph with the trained model, measure drift, and train if it is too large."""
    _require_scorable(config)
    trained = as_trained(open_store(config.store), config)
    manifests = run_plan(
        trained, display, lambda: plan_refresh(config), events=events, anyway=anyway
    )
    measured = manifests.get("drift")
    drift = measured.details if measured is not None else None
    passed = limits_passed(drift, config.refresh) if drift is not None else []
    for reason in passed:
        display.warn(reason)
    retrain = bool(passed) and config.refresh.retrain == "auto"
    if retrain:
        manifests = run_pipeline(config, display, events=events, anyway=anyway)
    return Refresh(manifests, drift, passed, retrain)


def plan_refresh(config: PipelineConfig) -> list[Step]:
    """The steps of a refresh: nothing of the training among them."""
    store = open_store(config.store)
    config = as_trained(store, config)
    kept = kept_artifacts(store, config)
    asked = lookups(store)
    (ingest,) = make_plan([STAGES["ingest"]], config, **asked)
    train = kept["train"]
    if ingest.fingerprint == kept["ingest"].fingerprint:
        # the graph is that of the training: as ever, without what only a training is for
        names = ["ingest", "features", *kept, "encode_all", "embed_all", "score"]
        stages = [STAGES[name] for name in dict.fromkeys([*names, "index", "recommend"])]
        return make_plan(stages, config, **asked, pinned=kept)
    stages = RefreshStages(
        store.fetch("train", train.fingerprint).at(Training).open().model().recipe,
        _baseline(store, train.fingerprint, ingest.fingerprint),
        store.fetch,
    ).all()
    del kept["ingest"]
    return make_plan(stages, config, **asked, pinned=kept)


def as_trained(store: AnyStore, config: PipelineConfig) -> PipelineConfig:
    """What is automatic as it was for the graph that the model was trained on."""
    found = trained_artifacts(store)
    if found is None:
        return config
    return resolve(config, counted_extent(found["ingest"]))[0]


def kept_artifacts(store: AnyStore, config: PipelineConfig) -> dict[str, Manifest]:
    """The trained model of the last run and what it came from, by stage."""
    found = trained_artifacts(store)
    if found is None:
        raise InputError(f"{config.store} has no trained model to refresh with; {FIRST}")
    for name in SETTINGS_OF:
        old = found[name].identity
        new = json.loads(json.dumps(STAGES[name].settings(config)))
        changed = differences(old.settings, new)
        if old.version != STAGES[name].version:
            changed = [f"code of {name}, version {old.version} -> {STAGES[name].version}"]
        if changed:
            raise ConfigError(_other_model(config, changed))
    graph = found["ingest"].identity.settings["graph"]
    now = json.loads(json.dumps(config.graph.dependencies(exclude=LOCATIONS)))
    changed = differences({key: value for key, value in graph.items() if key not in LOCATIONS}, now)
    if changed:
        raise ConfigError(_other_model(config, [f"graph.{text}" for text in changed]))
    del found["features"]
    return found


def trained_artifacts(store: AnyStore) -> dict[str, Manifest] | None:
    """The last model that is ready to score and what it came from; None where that is not whole.

    Calibration decides which one it is: a training that was stopped has none yet.
    """
    calibrate = store.current("calibrate")
    train = calibrate and store.find("train", calibrate.identity.made_from("train"))
    if calibrate is None or train is None:
        return None
    found: dict[str, Manifest] = {"calibrate": calibrate}
    for name, fingerprint in {**train.identity.inputs, **calibrate.identity.inputs}.items():
        manifest = store.find(name, fingerprint)
        if manifest is None:
            return None
        found[name] = manifest
    return found


def artifacts_in_use(store: AnyStore) -> set[tuple[str, str]]:
    """(stage, fingerprint) of what a refresh of the last run needs."""
    trained = trained_artifacts(store)
    names = {(name, found.fingerprint) for name, found in (trained or {}).items()}
    encoded = store.current("encode_all")
    noted = _noted(encoded)
    for earlier in [noted.trained, noted.last] if noted else []:
        names |= {(stage, name) for stage, name in vars(earlier).items() if name is not None}
    if encoded is not None:
        names.add(("ingest", encoded.identity.made_from("ingest")))
    return names


def limits_passed(drift: dict[str, Any], limits: RefreshConfig) -> list[str]:
    """Which limits the drift passes, a sentence each."""
    passed = []
    moved = max(item["relative_eta"] for item in drift["movement"]["encodings"])
    shift, auc = drift["score_shift"], drift["newest_edges"]["auc"]
    if limits.max_movement is not None and moved > limits.max_movement:
        passed.append(
            f"the encoding moved by {moved:.4g}, above `refresh.max_movement` {limits.max_movement}"
        )
    if limits.max_score_shift is not None and shift is not None and shift > limits.max_score_shift:
        passed.append(
            f"scores shifted by {shift:.4g}, above `refresh.max_score_shift` "
            f"{limits.max_score_shift}"
        )
    if limits.min_new_edge_auc is not None and auc is not None and auc < limits.min_new_edge_auc:
        passed.append(
            f"the AUC of the newest edges is {auc:.4f}, below `refresh.min_new_edge_auc` "
            f"{limits.min_new_edge_auc}"
        )
    return passed


def _require_scorable(config: PipelineConfig) -> None:
    """Refuse what cannot follow new edges, before anything is read."""
    if config.split.windows > 1:
        raise ConfigError(
            f"a refresh keeps one model, found `split.windows: {config.split.windows}`; set 1"
        )
    if config.train.refit:
        raise ConfigError(
            "a refresh keeps the model that was validated, found `train.refit: true`; set it to "
            "false, or use `peg run` without --refresh"
        )
    if config.repeats > 1:
        raise ConfigError(f"a refresh keeps one model, found `repeats: {config.repeats}`; set 1")
    if config.features.kind in ("learned", "one_hot"):
        raise ConfigError(
            f"a refresh needs features that new nodes have too, found `features.kind: "
            f"{config.features.kind}`; use another kind, or `peg run` without --refresh"
        )
    parts = {"score": config.score, "recommend": config.recommend}
    asked = {name: part.graph for name, part in parts.items() if part is not None}
    if not asked:
        raise ConfigError("a refresh ends in scores; set one of `score` and `recommend`")
    for name, graph in asked.items():
        if graph != "all":
            raise ConfigError(f"a refresh scores with all edges; set `{name}.graph: all`")


def _other_model(config: PipelineConfig, changed: list[str]) -> str:
    return (
        f"the trained model in {config.store} is not that of this configuration "
        f"({'; '.join(changed)}); {FIRST}"
    )


def _baseline(store: AnyStore, train: str, ingest: str) -> Baseline:
    """What to compare with: an interrupted or repeated refresh finds what it found before."""
    encoded = store.current("encode_all")
    if encoded is None:
        raise InputError(f"the last run scored nothing, so there is no earlier encoding; {FIRST}")
    noted = _noted(encoded)
    if noted is not None and (noted.train != train or not _exist(store, noted.trained)):
        noted = None
    if noted is not None and encoded.identity.made_from("ingest") == ingest:
        return noted
    last = _last_state(store, encoded, train)
    return Baseline(train, noted.trained if noted is not None else last, last)


def _last_state(store: AnyStore, encoded: Manifest, train: str) -> Earlier:
    """What ``current`` leads to, as far as it belongs together."""
    embedded, scored = store.current("embed_all"), store.current("score")
    made = {"encode_all": encoded.fingerprint, "train": train}
    if embedded is None or not made.items() <= embedded.identity.inputs.items():
        return Earlier(encoded.identity.made_from("ingest"), encoded.fingerprint)
    whole = scored is not None and scored.identity.inputs.get("embed_all") == embedded.fingerprint
    return Earlier(
        encoded.identity.made_from("ingest"),
        encoded.fingerprint,
        embedded.fingerprint,
        scored.fingerprint if whole and scored is not None else None,
    )


def _noted(encoded: Manifest | None) -> Baseline | None:
    """What the refresh that made an encoding compared with."""
    values = encoded.identity.settings.get("refresh") if encoded is not None else None
    return None if values is None else Baseline.of(values)


def _exist(store: AnyStore, earlier: Earlier) -> bool:
    return all(
        store.find(stage, name) is not None
        for stage, name in vars(earlier).items()
        if name is not None
    )
