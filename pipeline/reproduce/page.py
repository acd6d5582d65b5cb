"""All results on one page that is complete in itself: a section for every experiment."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

import polars as pl
from markupsafe import Markup

from peg_core.atomic_file import atomic_path
from pipeline.config.redaction import redact_all
from pipeline.report.build import render_page
from pipeline.report.formats import format_time
from pipeline.reproduce.experiment_file import ExperimentFile
from pipeline.reproduce.figures import draw_figures
from pipeline.reproduce.results import CURVES_FILE, CURVES_SCHEMA, read_results
from pipeline.reproduce.section import SectionBuilder

PAGE = "results.html"


def write_page(folder: Path, files: Sequence[ExperimentFile]) -> None:
    """Show the results that a folder has of these experiments.

    Args:
        folder: With the tables; the page goes there, too.
        files: In the order of their sections.
    """
    html = build_page(files, read_results(folder), read_results(folder, CURVES_FILE, CURVES_SCHEMA))
    with atomic_path(folder / PAGE) as temporary:
        temporary.write_text(html, encoding="utf-8")


def build_page(files: Sequence[ExperimentFile], table: pl.DataFrame, curves: pl.DataFrame) -> str:
    """The page as HTML: styles and figures inline, no scripts, no requests."""
    source = resources.files("pipeline.reproduce").joinpath("results.html").read_text("utf-8")
    found = set(table["experiment"])
    return render_page(
        source,
        sections=[_section(file, table, curves) for file in files if file.name in found],
        created=format_time(datetime.now(UTC).isoformat(timespec="seconds")),
    )


def _section(file: ExperimentFile, table: pl.DataFrame, curves: pl.DataFrame) -> dict[str, Any]:
    builder = SectionBuilder(file.name, file.experiment, table)
    section = builder.build()
    own = curves.filter(pl.col("experiment") == file.name)
    plots = list(draw_figures(file.name, file.experiment, builder.means, own))
    return {
        "about": section,
        "failures": redact_all(section.failures),
        "plots": [(plot, Markup(plot.svg)) for plot in plots],
    }
