"""Warnings that say the same of several encoded graphs are one."""

from pipeline.report.facts import each_fact_once, fact_of

CUT = (
    "lambda_p and lambda_p+1 are 1.5e-16 apart: the cut at 29 splits an eigenspace, so which "
    "vectors are kept is a matter of chance (largest residual 2e-06); "
)


def test_numbers_advice_and_counts_are_no_part_of_a_fact():
    other = CUT.replace("29", "8").replace("1.5e-16", "0") + "larger gaps follow 2, 30 dimensions"
    assert fact_of(CUT + "no number of dimensions has a gap") == fact_of(other)
    assert fact_of("odd (3 of 10 graphs)") == fact_of("odd")
    assert fact_of("odd") != fact_of("even")


def test_ten_encodings_and_the_graph_of_all_edges_are_one_warning():
    first = f"encoding-0-all: {CUT}larger gaps follow 9 dimensions (10 of 10 graphs)"
    again = f"encoding-0-all: {CUT}no number of dimensions has a gap"
    assert each_fact_once([first, "encoding-0-all: odd", again]) == [first, "encoding-0-all: odd"]


def test_numbers_of_other_stages_tell_warnings_apart():
    texts = ["test AUC is 0.4 on 10 pairs", "test AUC is 0.3 on 10 pairs"]
    assert each_fact_once([*texts, texts[0]]) == texts
