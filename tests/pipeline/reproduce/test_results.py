"""The table of results, the section that shows it, and the page."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from pipeline.config.document import ConfigDocument
from pipeline.reproduce.experiment import Experiment, PaperFigures
from pipeline.reproduce.experiment_file import ExperimentFile
from pipeline.reproduce.page import build_page
from pipeline.reproduce.results import (
    CurvePoint,
    ResultRow,
    as_curves,
    as_table,
    keep_results,
    read_results,
    summarise_results,
)
from pipeline.reproduce.section import SectionBuilder

EXPERIMENT = Experiment(
    experiment="Links & more",
    graphs={"one": {"title": "One"}, "two": {}},
    methods={"peg": {"title": "PEG", "paper": "PEG+"}, "gcn": {"baseline": True}},
    measures=["edge_weights"],
    paper={
        "methods": {"PEG+/N": {"one": 90.0, "two": 91.0}},
        "baselines": {"SEAL/N": {"one": 99.5, "two": 10.0}},
    },
)
VALUES = {"one": {"peg": [0.90, 0.94], "gcn": [0.95, 0.97]}, "two": {"peg": [0.8], "gcn": [0.7]}}


def rows(values=VALUES, **more):
    for graph, methods in values.items():
        for method, found in methods.items():
            for split, value in enumerate(found):
                paper = EXPERIMENT.paper_figure(method, "N", graph)
                yield ResultRow(
                    "links", graph, method, "N", split, "random", "auc", value, paper,
                    10.0, 8.0, 1.0, **more,
                )  # fmt: skip


def test_a_row_of_the_paper_is_named_with_its_features_or_without():
    assert EXPERIMENT.paper_figure("peg", "N", "one") == 0.9
    assert EXPERIMENT.paper_figure("peg", "C", "one") is None
    methods = {"peg": EXPERIMENT.methods["peg"].model_copy(update={"paper": "PEG+/N"})}
    named = EXPERIMENT.model_copy(update={"methods": methods})
    assert named.paper_figure("peg", "C", "two") == 0.91


def test_means_and_deviations_are_those_of_numpy():
    found = summarise_results(as_table(rows()))
    for row in found.iter_rows(named=True):
        values = VALUES[row["graph"]][row["method"]]
        assert row["mean"] == pytest.approx(np.mean(values))
        assert row["splits"] == len(values)
        if len(values) > 1:
            assert row["deviation"] == pytest.approx(np.std(values, ddof=1))


def test_a_heuristic_of_several_cells_counts_once_for_a_split():
    own = [
        ResultRow("links", "one", "katz", "", split, "random", "auc", 0.5, heuristic=True)
        for split in (0, 0, 1)
    ]
    (row,) = summarise_results(as_table(own)).rows(named=True)
    assert row["splits"] == 2


def test_results_of_a_cell_are_replaced_and_others_stay(tmp_path):
    nothing = as_curves([])
    failed = ResultRow("links", "one", "peg", "N", 0, error="it broke")
    other = ResultRow("other", "one", "peg", "N", 0, "random", "auc", 0.1)
    keep_results(tmp_path, as_table([failed, other]), nothing)
    keep_results(tmp_path, as_table(rows({"one": {"peg": [0.9]}})), nothing)
    keep_results(tmp_path, as_table(rows({"two": {"peg": [0.8]}})), nothing)
    found = {(r["experiment"], r["graph"]): r["value"] for r in read_results(tmp_path).to_dicts()}
    assert found == {("other", "one"): 0.1, ("links", "one"): 0.9, ("links", "two"): 0.8}
    keep_results(tmp_path, as_table(rows({"one": {"gcn": [0.7]}}, quick=True)), nothing)
    kept = read_results(tmp_path).select("experiment", "method").rows()
    assert sorted(kept) == [("links", "gcn"), ("other", "peg")]


def test_the_best_of_a_graph_is_marked_and_a_winning_baseline_is_named():
    section = SectionBuilder("links", EXPERIMENT, as_table(rows())).build()
    assert section.columns == ["One", "two"]
    shown = {row.name: row.cells for row in section.rows}
    assert [cell.value for cell in shown["PEG"]] == ["92.00", "80.00"]
    assert [cell.best for cell in shown["PEG"]] == [False, True]
    assert [cell.best for cell in shown["gcn"]] == [True, False]
    assert shown["PEG"][0].small[0] == "paper 90.00, +2.00"
    assert shown["PEG"][1].small[0] == "paper 91.00, −11.00"
    assert shown["PEG"][0].small[1] == "2 splits, 10.0 s"
    assert "SEAL, N (not run here)" in shown
    assert shown["SEAL, N (not run here)"][0].small == ("paper 99.50",)
    assert "One: a baseline wins, gcn with 96.00 against 92.00 of PEG" in section.sentences
    assert "One: the paper's SEAL, N has 99.50, above 92.00 of PEG here" in section.sentences
    assert not any(sentence.startswith("two:") for sentence in section.sentences)


def test_generated_graphs_are_said_and_not_compared_with_the_paper():
    section = SectionBuilder("links", EXPERIMENT, as_table(rows(generated=True))).build()
    assert section.sentences[0].startswith("Small random graphs stand in for the real ones")
    assert [row.name for row in section.rows] == ["PEG", "gcn"]
    assert not any("the paper's" in sentence for sentence in section.sentences)


def test_isolated_ends_are_told_with_the_result_without_them():
    def row(protocol, metric, value):
        return ResultRow("links", "one", "peg", "N", 0, protocol, metric, value)

    own = [
        row("random", "auc", 0.9),
        row("random", "cold_links", 0.25),
        row("random", "cold_non_links", 0.125),
        row("random, warm pairs", "auc", 0.875),
    ]
    bare = EXPERIMENT.model_copy(update={"paper": PaperFigures()})
    assert SectionBuilder("links", bare, as_table(own)).build().sentences == [
        "One: 25.0% of the test links and 12.5% of the non-links have an isolated end; without "
        "them PEG has 87.50 in place of 90.00"
    ]


def page() -> str:
    file = ExperimentFile(Path("links.yaml"), EXPERIMENT, ConfigDocument())
    failed = ResultRow("links", "two", "gcn", "N", 1, error="no <such> file")
    points = [CurvePoint("links", "edge_weights", "one", "peg", x / 9, x / 20) for x in range(10)]
    return build_page([file], as_table([*rows(), failed]), as_curves(points))


def test_the_page_holds_everything_and_asks_for_nothing():
    html = page()
    assert "Links &amp; more" in html
    assert "two/gcn/N/1: no &lt;such&gt; file" in html
    assert "<strong>96.00</strong>" in html
    assert 'id="figure-links-one-weights"' in html
    addresses = re.findall(r"""(?:src|href)="([^"]*)""", html) + re.findall(r"url\(([^)]*)", html)
    assert [a for a in addresses if not a.startswith(("#", "data:"))] == []
    assert "<script" not in html


@pytest.mark.slow
def test_the_page_renders_in_a_browser_without_a_word_on_the_console(open_page):
    dom, console = open_page(page())
    assert console == []
    assert "<strong>96.00</strong>" in dom
    assert dom.count("<svg") == 1
