"""The report in a real browser: it renders, and the console stays silent."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.report.build import build_report
from pipeline.report.data import DegreeClass, NodeMap, ReportData, StageRow, TopPair

pytestmark = pytest.mark.slow


def sample() -> ReportData:
    generator = np.random.default_rng(1)
    return ReportData(
        name="citations & more",
        created="2025-03-01T09:05:00+00:00",
        config_yaml="name: citations\n",
        stages=[StageRow("ingest", "0123456789abcdef", "run", 1.5, {"nodes": 10, "edges": 20})],
        metrics={"random": [{"method": "peg", "auc": 0.9}, {"method": "adamic_adar", "auc": 0.8}]},
        epochs=[
            {"seed": 0, "epoch": epoch, "loss": 1 / epoch, "valid_auc": 0.8} for epoch in (1, 2)
        ],
        test_labels=np.repeat([1, 0], 50),
        test_scores=generator.random(100),
        calibration=[
            {"probability": 0.2, "links": 0.1, "pairs": 60.0},
            {"probability": 0.8, "links": 0.9, "pairs": 40.0},
        ],
        score_histogram=np.histogram(generator.random(500), bins=20, range=(0, 1)),
        eigenvalues={"le": [0.1, 0.2, 0.4]},
        outputs={"Scores": "runs/scores/*.parquet"},
        warnings=["the cut splits an eigenspace"],
        top=[TopPair("paper 7", "paper 8", 0.98, 3, (12, 4))],
        node_map=NodeMap(
            generator.random((9, 2)), ["a", "b", "c"] * 3, "kind", np.array([[0, 4]]), 9
        ),
        by_degree=[DegreeClass("1", 20, [0.8, 0.7]), DegreeClass("2", 30, [0.9, 0.95])],
        rival="adamic_adar",
    )


def test_report_renders_without_a_word_on_the_console(open_page):
    dom, console = open_page(build_report(sample()))
    assert console == []
    assert "<title>citations &amp; more · link prediction report</title>" in dom
    assert dom.count("<svg") == 10
    for key in (
        "roc",
        "test-scores",
        "calibration",
        "by-degree",
        "map",
        "loss",
        "valid-auc",
        "candidate-scores",
        "eigenvalues",
        "stability",
    ):
        assert f'id="figure-{key}"' in dom
    assert dom.rstrip().endswith("</html>")


def test_console_error_of_a_page_is_noticed(open_page):
    document = "<!doctype html><title>t</title><script>console.error('it broke')</script>"
    _, console = open_page(document)
    assert len(console) == 1
    assert "it broke" in console[0]


def test_request_to_the_outside_is_noticed(open_page):
    report = build_report(sample())
    leaking = report.replace("</body>", '<img src="https://example.invalid/x.png"></body>')
    assert leaking != report
    _, console = open_page(leaking)
    assert any("Content Security Policy" in line for line in console)
