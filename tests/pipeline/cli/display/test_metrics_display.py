"""Tables of metrics in terminals of every width."""

import io
import re

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from pipeline.cli.display.metrics_display import print_metrics

NAMES = ["auc", "average_precision", "mrr", "hits@1", "hits@10", "hits@20", "hits@50", "hits@100"]


def rows(number):
    methods = ["peg", "common_neighbours", "preferential_attachment"]
    return [
        {"method": method}
        | {
            key: value
            for place, name in enumerate(NAMES[:number])
            for key, value in {
                name: (place + line) / 16,
                f"{name}_low": place / 32,
                f"{name}_high": place / 32 + 0.25,
            }.items()
        }
        for line, method in enumerate(methods)
    ]


def printed(table, width):
    out = io.StringIO()
    print_metrics(Console(file=out, width=width), "random", table)
    return out.getvalue()


@given(width=st.integers(45, 250), number=st.integers(1, len(NAMES)))
def test_every_number_is_shown_whole_within_the_width(width, number):
    text = printed(rows(number), width)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    shown = re.findall(r"(\d\.\d{4}) ±0\.125", text)
    expected = [row[name] for row in rows(number) for name in NAMES[:number]]
    assert sorted(shown) == sorted(f"{value:.4f}" for value in expected)


def test_a_wide_terminal_has_one_table():
    assert printed(rows(8), 200).count("random") == 1
    assert printed(rows(8), 80).count("random") > 1
