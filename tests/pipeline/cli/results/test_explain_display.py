"""What `peg explain` prints: whole numbers and names in eighty columns, whatever the pair."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from peg_core.explain.explanation import Closeness, CommonNeighbour, PairExplanation, Part
from pipeline.cli.results.explain_command import print_explanation


@pytest.fixture
def explanation():
    long = "a-very-long-name-of-a-node-" * 4
    common = [CommonNeighbour(f"{long}{n}", "customer", 12_345, 0.25, 1e-5) for n in range(10)]
    return PairExplanation(
        source=long,
        target=b"\x01\xff",
        linked=True,
        score=0.98765,
        logit=4.321,
        baseline=-1.5,
        parts=[Part("position geometry, deepwalk", 6.0), Part("ways of two steps", -0.179)],
        degrees=(1_234_567, 3),
        num_common=10_000,
        common=common,
        encodings=[Closeness("deepwalk", 0.123456, 0.9871)],
        feature_similarity=0.5,
        features_closer_than=0.25,
        same_component=False,
    )


def test_everything_is_there_and_no_line_is_longer_than_eighty(explanation):
    out = StringIO()
    print_explanation(Console(file=out, width=80, highlight=False), explanation, graph="train")
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    text = " ".join(out.getvalue().split())
    for words in (
        "01ff: score 0.9877, logit +4.321; a known link already",
        "by the edges that were trained on",
        "the average random pair -1.500",
        "position geometry, deepwalk +6.000 ++++++++++++++++",
        "1,234,567 and 3",
        "0.1235, closer than 98.7% of random pairs",
        "0.500, more alike than 25.0% of random pairs",
        "the 10 of smallest degree of 10,000",
        "12,345",
    ):
        assert words in text, words
    assert "…" not in text
