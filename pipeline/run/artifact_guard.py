"""Nothing damaged is used: artifacts are looked at before a run reads them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from peg_core.artifacts.integrity import DamagedArtifact
from pipeline.config.pipeline_config import IntegrityConfig
from pipeline.run.plan import Action, Step
from pipeline.store.local_store import AnyStore


class ArtifactGuard:
    """Looks at the artifacts of a run, at the contents of each once.

    Args:
        store: Where they are; its lease is held.
        settings: How closely to look, and what to do about damage.
        warn: Tells the user.
    """

    def __init__(
        self, store: AnyStore, settings: IntegrityConfig, warn: Callable[[str], None]
    ) -> None:
        self._store = store
        self._settings = settings
        self._warn = warn
        self._whole: set[tuple[str, str]] = set()

    def check(self, steps: Iterable[Step], only: Collection[str] | None = None) -> None:
        """Set damaged artifacts aside, so that a plan made after this runs their stages again."""
        for step in steps:
            if only is not None and step.stage.name not in only:
                continue
            damage = step.damage
            if step.action is Action.REUSE:
                damage = self._damage(step.stage.name, step.fingerprint)
            if damage is None:
                continue
            if step.kept:
                remedy = "a refresh cannot make it again: run `peg run` without --refresh"
                raise self._error(step.stage.name, step.fingerprint, damage, remedy)
            self._set_aside(step.stage.name, step.fingerprint, damage, "the stage runs again")

    def is_whole(self, stage: str, fingerprint: str) -> bool:
        """Whether an earlier artifact can be built on; a damaged one is set aside."""
        damage = self._damage(stage, fingerprint)
        if damage is not None:
            self._set_aside(stage, fingerprint, damage, "nothing of it is used")
        return damage is None

    def _damage(self, stage: str, fingerprint: str) -> str | None:
        if (stage, fingerprint) in self._whole:
            return None
        contents = self._settings.verify == "full"
        damage = self._store.damage(stage, fingerprint, contents=contents)
        if damage is None:
            self._whole.add((stage, fingerprint))
        return damage

    def _set_aside(self, stage: str, fingerprint: str, damage: str, then: str) -> None:
        if self._settings.on_damage == "stop":
            remedy = "remove it, or let `integrity.on_damage` be rerun, and run again"
            raise self._error(stage, fingerprint, damage, remedy)
        moved = self._store.set_aside(stage, fingerprint)
        self._warn(f"{stage} is damaged: {damage}; set aside as {moved}, {then}")

    def _error(self, stage: str, fingerprint: str, damage: str, remedy: str) -> DamagedArtifact:
        return DamagedArtifact.of(self._store.location(stage, fingerprint), damage, remedy)
