from __future__ import annotations

import re

import matplotlib

from pipeline.report.figures import plot_roc
from tests.fixtures.scored_pairs import scored_pairs


def test_figure_bytes_do_not_depend_on_the_users_matplotlib_settings():
    labels, scores = scored_pairs(300)
    first = plot_roc(labels, scores).svg
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.hashsalt": None}):
        assert plot_roc(labels, scores).svg == first
        assert matplotlib.rcParams["font.size"] == 30


def test_figure_takes_colours_and_font_from_the_page():
    labels, scores = scored_pairs(300)
    svg = plot_roc(labels, scores).svg
    assert "font-family" not in svg
    assert "<style" not in svg
    outside = re.sub(r"var\(--[\w-]+, #[0-9a-f]{6}\)", "", svg)
    assert (
        re.findall(r"#[0-9a-f]{6}\b(?!-)", re.sub(r'(href|id|clip-path)="[^"]*"', "", outside))
        == []
    )
