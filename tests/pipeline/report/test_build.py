from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from pipeline.report.build import build_report
from pipeline.report.data import DegreeClass, NodeMap, ReportData, StageRow, TopPair

FIGURES = [
    "map", "roc", "test-scores", "calibration", "by-degree", "loss", "valid-auc", "eigenvalues",
    "stability", "candidate-scores",
]  # fmt: skip
VOID = {"meta", "link", "br", "hr", "img", "input"}


@pytest.fixture(scope="module")
def data() -> ReportData:
    generator = np.random.default_rng(3)
    counts, edges = np.histogram(generator.random(1234), bins=20, range=(0, 1))
    return ReportData(
        name="citations",
        created="2025-03-01T09:05:00+00:00",
        config_yaml="name: citations\nstore: runs\n",
        stages=[
            StageRow("ingest", "0123456789abcdef", "reuse", 0.25, {"nodes": 12_345, "edges": 98e6}),
            StageRow("train", "fedcba9876543210", "run", 90.0, {"best_auc": 0.93217}),
        ],
        metrics={
            "random": [
                {
                    "method": "peg",
                    "auc": 0.9312,
                    "auc_low": 0.92,
                    "auc_high": 0.94,
                    "auc_std": 0.0021,
                    "hits@20": 0.31,
                },
                {"method": "adamic_adar", "auc": 0.8801, "hits@20": 0.42},
            ],
            "heart": [{"method": "peg", "mrr": 0.2}],
        },
        epochs=[
            {"seed": 0, "epoch": epoch, "loss": 1 / epoch, "valid_auc": 0.8 + epoch / 100}
            for epoch in range(1, 6)
        ],
        test_labels=np.repeat([1, 0], 50),
        test_scores=generator.random(100),
        calibration=[
            {"probability": 0.2, "links": 0.3, "pairs": 40.0},
            {"probability": 0.9, "links": 0.9, "pairs": 60.0},
        ],
        score_histogram=(counts, edges),
        eigenvalues={"le": [0.1, 0.2, 0.4]},
        outputs={"Scores": "runs/scores/*.parquet"},
        warnings=["the cut splits an eigenspace"],
        top=[TopPair("paper 7", "paper 8", 0.98765, 3, (12, 4))],
        node_map=NodeMap(
            generator.random((5, 2)), ["a", "b", "a", "a", "b"], "kind", np.array([[1, 2]]), 5
        ),
        by_degree=[DegreeClass("1", 20, [0.8, 0.7]), DegreeClass("2", 30, [0.9, 0.95])],
        rival="adamic_adar",
    )


@pytest.fixture(scope="module")
def document(data: ReportData) -> str:
    return build_report(data)


class Page(HTMLParser):
    """What a browser would see: tags with attributes, text per element, balance of the tags."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.feed(document)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if data.strip():
            self.texts.append((self.open[-1] if self.open else "", data.strip()))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    def text_of(self, tag: str) -> list[str]:
        return [text for name, text in self.texts if name == tag]


def test_document_is_complete_and_its_tags_balance(document):
    page = Page(document)
    assert document.startswith("<!doctype html>")
    assert page.open == []
    assert page.text_of("title")[0] == "citations · link prediction report"
    assert page.text_of("h1") == ["citations"]


def test_the_metric_that_chose_the_model_is_drawn_beside_the_auc(data):
    epochs = [{**row, "valid_mrr": row["epoch"] / 10} for row in data.epochs]
    page = Page(build_report(replace(data, epochs=epochs)))
    assert "Validation mrr" in [text for _, text in page.texts]
    assert "Highest: 0.5000 at epoch 5." in [text for _, text in page.texts]


def test_identifiers_are_unique_and_references_resolve(document):
    page = Page(document)
    identifiers = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(identifiers) == len(set(identifiers))
    values = [value or "" for _, attributes in page.tags for value in attributes.values()]
    references = {match for value in values for match in re.findall(r"^(?:url\()?#([\w-]+)", value)}
    assert references
    assert references <= set(identifiers)


def test_summary_shows_quality_and_size(document):
    values = Page(document).text_of("dd")
    assert values[:7] == [
        "0.9312",
        "+0.0511 against Adamic-Adar",
        "–",
        "12,345",
        "98 M",
        "98,000,000",
        "1,234",
    ]


def test_summary_is_said_in_words_and_the_best_new_pairs_are_listed(document):
    page = Page(document)
    assert "PEG scores a held-out link above a non-link 93.1% of the time" in document
    assert page.text_of("title")[1:] == ["paper 7 – paper 8: 0.9877"]
    assert {"paper 7", "paper 8"} <= set(page.text_of("span"))
    assert {"0.9877", "3", "12, 4"} <= set(page.text_of("td"))
    assert {"a", "b"} <= set(page.text_of("li"))


def test_model_behind_a_heuristic_gets_a_minus(data):
    rows = [{"method": "peg", "auc": 0.5}, {"method": "cn", "auc": 0.75}]
    behind = replace(data, metrics={"random": rows})
    assert "−0.2500 against cn" in build_report(behind)


def test_best_value_of_each_column_is_bold(document):
    page = Page(document)
    assert page.text_of("strong") == ["0.9312", "0.4200"]
    assert {"± 0.0021", "0.9200–0.9400"} <= set(page.text_of("span"))
    assert [text for text in page.text_of("th") if text in ("AUC", "Hits@20", "Auc std")] == [
        "AUC",
        "Hits@20",
    ]


def test_every_protocol_has_a_table_of_its_own(document):
    page = Page(document)
    assert len([t for t in page.all("table") if t["class"] == "metrics"]) == 2
    titles = set(page.text_of("h3"))
    assert "Links against drawn non-links" in titles
    assert "Every link against hard non-links of its own (HeaRT)" in titles


def test_a_run_with_hard_non_links_alone_is_headed_by_its_mrr(data):
    hard = replace(data, metrics={"heart": [{"method": "peg", "mrr": 0.25}]})
    assert Page(build_report(hard)).text_of("dt")[0] == "MRR"


def test_values_that_read_the_same_are_equally_good(data):
    tied = [{"method": "a", "auc": 0.90001}, {"method": "b", "auc": 0.90002}]
    assert (
        Page(build_report(replace(data, metrics={"random": tied}))).text_of("strong")
        == ["0.9000"] * 2
    )


def test_missing_and_undefined_metrics_are_dashes_and_never_best(data):
    rows = [
        {"method": "a", "auc": float("nan"), "mrr": 0.1},
        {"method": "b", "auc": 0.6},
        {"method": "c", "auc": 0.7},
    ]
    page = Page(build_report(replace(data, metrics={"random": rows})))
    assert page.text_of("strong") == ["0.7000"]
    assert [text for text in page.text_of("td") if text in ("–", "0.6000", "0.1000")] == [
        *("–", "0.1000"),
        *("0.6000", "–"),
        "–",
    ]


def test_numpy_numbers_are_numbers(data):
    rows = [{"method": "peg", "auc": np.float32(0.75)}]
    stages = [StageRow("ingest", "f", "run", 1.0, {"num_nodes": np.int64(77)})]
    document = build_report(replace(data, metrics={"random": rows}, stages=stages))
    assert "0.7500" in document
    assert '<dd class="value">77</dd>' in document


def test_stages_are_listed_with_time_counts_and_fingerprint(document):
    page = Page(document)
    assert {"0.25 s", "1 min 30 s"} <= set(page.text_of("td"))
    assert {"12,345", "98,000,000", "0.9322"} <= set(page.text_of("li"))
    assert {"0123456789abcdef", "fedcba9876543210"} <= set(page.text_of("code"))
    widths = [attributes["style"] for attributes in page.all("i")]
    assert widths[-2:] == ["width: 0.3%", "width: 99.7%"]  # after the colours of the map


def test_every_figure_is_there_with_a_text_for_those_who_cannot_see_it(document):
    page = Page(document)
    assert [figure["id"] for figure in page.all("figure")] == [f"figure-{key}" for key in FIGURES]
    images = page.all("svg")
    assert len(images) == len(FIGURES)
    assert all(image["role"] == "img" and len(image["aria-label"] or "") > 20 for image in images)


def test_every_table_header_has_a_scope(document):
    headers = Page(document).all("th")
    assert headers
    assert {header.get("scope") for header in headers} == {"col", "row"}


def test_without_eigenvalues_there_is_no_such_figure(data):
    document = build_report(replace(data, eigenvalues={}))
    assert "figure-eigenvalues" not in document
    assert "encodings</h2>" not in document


def test_empty_parts_are_left_out(data):
    document = build_report(
        replace(data, stages=[], metrics={}, epochs=[], outputs={}, warnings=[])
    )
    for heading in ("warnings", "metrics", "stages", "outputs"):
        assert f'id="{heading}"' not in document
    assert 'id="configuration"' in document


def test_nothing_the_user_named_becomes_markup(data):
    evil = "<script>alert('x')</script>\"&"
    document = build_report(
        replace(
            data,
            name=evil,
            created=evil,
            config_yaml=evil,
            stages=[StageRow(evil, evil, evil, 1.0, {evil: evil})],
            metrics={evil: [{"method": evil, evil: 0.5}, {"method": evil, "auc": evil}]},
            eigenvalues={evil: [0.1, 0.2], "other": [0.3, 0.4]},
            outputs={evil: evil},
            warnings=[evil],
            top=[TopPair(evil, evil, 0.5, 0, (1, 1))],
            node_map=NodeMap(np.eye(2), [evil, "x"], evil, np.array([[0, 1]]), 2),
            rival=evil,
        )
    )
    page = Page(document)
    assert page.all("script") == []
    assert page.text_of("h1") == [evil]
    assert evil in page.text_of("li")
    assert evil in page.text_of("text")


def test_page_asks_the_network_for_nothing(document):
    page = Page(document)
    assert page.all("script") == []
    for _, attributes in page.tags:
        for name in attributes.keys() & {"src", "href", "srcset", "xlink:href", "action", "data"}:
            assert re.match(r"#|data:", attributes[name] or "")
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", document))
    assert "@import" not in document
    without_namespaces = re.sub(r'xmlns(:\w+)?="[^"]*"', "", document)
    assert "http://" not in without_namespaces
    assert "https://" not in without_namespaces
    policies = [meta["content"] for meta in page.all("meta") if "http-equiv" in meta]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]


def test_same_data_gives_the_same_bytes(data, document):
    assert build_report(data) == document


def test_nothing_secret_is_shown(data):
    shown = build_report(
        replace(
            data,
            config_yaml="store: s3://me:hidden-1@bucket/x?key=hidden-2\npassword: hidden-3",
            outputs={"Scores": "https://host/x?X-Amz-Signature=hidden-4"},
            warnings=["refused: {'token': 'hidden-5'}"],
        )
    )
    assert "hidden-" not in shown
    assert "bucket/x" in shown
