"""A draft, checked as `peg run` would check it, with what its first run will take."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from peg_core.atomic_file import atomic_path
from peg_core.errors import ConfigError
from pipeline.config.loading import load_config
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.draft.draft import Draft
from pipeline.draft.draft_text import draft_text
from pipeline.run.runner import plan_run
from pipeline.run.sizing.automatic import GraphExtent
from pipeline.run.sizing.estimate import Estimate
from pipeline.run.sizing.expectation import estimate_run
from pipeline.run.sizing.graph_extent import graph_extent
from pipeline.store.local_store import open_store


@dataclass(frozen=True)
class FirstRun:
    """How large the graph is, and what a run of all stages will take."""

    extent: GraphExtent
    total: Estimate


def expect_first_run(draft: Draft) -> FirstRun:
    """Load the draft with the real schema, and look at its tables as `peg plan` does.

    Raises:
        InputError: A run would be refused.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "draft.yaml"
        file.write_text(draft_text(draft, file.name))
        config = load_config(file)
    store = open_store(config.store)
    expected = estimate_run(config, store, plan_run(config))
    return FirstRun(_better_known(graph_extent(config, store), draft, config), expected.total)


def _better_known(extent: GraphExtent, draft: Draft, config: PipelineConfig) -> GraphExtent:
    """Nodes that were counted, where all rows were looked at and no table tells."""
    tables, kinds = config.graph.node_tables, config.graph.kinds
    if extent.exact or not draft.edges.is_whole or len(tables) == len(kinds):
        return extent
    return GraphExtent(draft.sampled_nodes, extent.edges, exact=False)


def write_pipeline(text: str, out: Path, *, overwrite: bool) -> None:
    """Write the file; it appears when it is whole.

    Raises:
        ConfigError: It exists and may not be replaced.
    """
    require_free(out, overwrite=overwrite)
    with atomic_path(out) as temporary:
        temporary.write_text(text)


def require_free(out: Path, *, overwrite: bool) -> None:
    """Refuse to replace a file that somebody may have edited."""
    if out.is_dir():
        raise ConfigError(f"{out} is a folder, needed is the name of a file; add one to --out")
    if out.exists() and not overwrite:
        raise ConfigError(
            f"{out} exists already; name another file with --out, or replace it with --overwrite"
        )
