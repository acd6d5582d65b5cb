"""What a run of a pipeline is expected to take, here and now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from peg_core.artifacts.manifest import Manifest
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.history import read_history
from pipeline.run.input_check import check_inputs
from pipeline.run.plan import Step
from pipeline.run.sizing.automatic import Choice, resolve
from pipeline.run.sizing.estimate import Estimate, estimates, measured_rates, total
from pipeline.run.sizing.graph_extent import graph_extent
from pipeline.run.sizing.workload import Workload
from pipeline.store.local_store import AnyStore


@dataclass(frozen=True)
class Expectation:
    """Estimates of all stages of a plan.

    Args:
        choices: What is automatic, and what it became.
    """

    by_stage: dict[str, Estimate]
    choices: list[Choice]
    workload: Workload

    @property
    def total(self) -> Estimate:
        return total(self.by_stage)

    def work_done(self, manifest: Manifest) -> float:
        """What a stage did of its work: training may have ended early."""
        found = self.by_stage.get(manifest.identity.stage)
        share = manifest.counts.get("links_seen", self.workload.links) / self.workload.links
        return found.work * share if found is not None else 0.0

    def as_dict(self, steps: Sequence[Step]) -> dict[str, Any]:
        """As ``peg plan --json`` prints it."""
        return {
            "stages": [
                {
                    "stage": step.stage.name,
                    "action": step.action.value,
                    "why": step.reason,
                    "fingerprint": step.fingerprint,
                    "estimate": self.by_stage[step.stage.name].as_dict(),
                }
                for step in steps
            ],
            "total": self.total.as_dict(),
            "automatic": {
                choice.key: {"value": choice.value, "reason": choice.reason}
                for choice in self.choices
            },
        }


def estimate_run(config: PipelineConfig, store: AnyStore, steps: Sequence[Step]) -> Expectation:
    """Looks at the tables of all stages that would run, and at what earlier runs took.

    Raises:
        InputError: A table cannot be used.
    """
    tables = check_inputs(config, steps)
    extent = graph_extent(config, store)
    resolved, choices = resolve(config, extent)
    work = Workload.of(resolved, extent, tables)
    rates = measured_rates(read_history(config.store))
    return Expectation(estimates(steps, work, rates), choices, work)
