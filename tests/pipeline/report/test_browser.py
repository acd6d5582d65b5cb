"""The report in a real browser: it renders, and the console stays silent."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pipeline.report.build import build_report
from pipeline.report.data import ReportData, StageRow

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--virtual-time-budget=3000",
)
TIMEOUT_SECONDS = 120

pytestmark = pytest.mark.slow


@pytest.fixture
def browser() -> str:
    for name in BROWSERS:
        if path := shutil.which(name):
            return path
    pytest.skip(f"no browser found, looked for {', '.join(BROWSERS)}; install one to run this test")


def open_page(browser: str, document: str, folder: Path) -> tuple[str, list[str]]:
    """The DOM after loading, and what the page wrote to the console."""
    page = folder / "page.html"
    page.write_text(document, encoding="utf-8")
    command = [
        browser,
        *FLAGS,
        f"--user-data-dir={folder / 'profile'}",
        "--dump-dom",
        page.as_uri(),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=True
    )
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def sample() -> ReportData:
    generator = np.random.default_rng(1)
    return ReportData(
        name="citations & more",
        created="2025-03-01T09:05:00+00:00",
        config_yaml="name: citations\n",
        stages=[StageRow("ingest", "0123456789abcdef", "run", 1.5, {"nodes": 10, "edges": 20})],
        metrics=[{"method": "peg", "auc": 0.9}, {"method": "adamic_adar", "auc": 0.8}],
        epochs=[
            {"seed": 0, "epoch": epoch, "loss": 1 / epoch, "valid_auc": 0.8} for epoch in (1, 2)
        ],
        test_labels=np.repeat([1, 0], 50),
        test_scores=generator.random(100),
        score_histogram=np.histogram(generator.random(500), bins=20, range=(0, 1)),
        eigenvalues={"le": [0.1, 0.2, 0.4]},
        outputs={"Scores": "runs/scores/*.parquet"},
        warnings=["the cut splits an eigenspace"],
    )


def test_report_renders_without_a_word_on_the_console(browser, tmp_path):
    dom, console = open_page(browser, build_report(sample()), tmp_path)
    assert console == []
    assert "<title>citations &amp; more · link prediction report</title>" in dom
    assert dom.count("<svg") == 6
    for key in ("roc", "test-scores", "loss", "valid-auc", "candidate-scores", "eigenvalues"):
        assert f'id="figure-{key}"' in dom
    assert dom.rstrip().endswith("</html>")


def test_console_error_of_a_page_is_noticed(browser, tmp_path):
    document = "<!doctype html><title>t</title><script>console.error('it broke')</script>"
    _, console = open_page(browser, document, tmp_path)
    assert len(console) == 1
    assert "it broke" in console[0]


def test_request_to_the_outside_is_noticed(browser, tmp_path):
    report = build_report(sample())
    leaking = report.replace("</body>", '<img src="https://example.invalid/x.png"></body>')
    assert leaking != report
    _, console = open_page(browser, leaking, tmp_path)
    assert any("Content Security Policy" in line for line in console)
