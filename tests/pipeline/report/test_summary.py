"""The metrics in sentences: every number is the table's, and so is who is ahead."""

from __future__ import annotations

import pytest

from pipeline.report.summary import summarise_in_words


def rows(model, heuristic, spread=0.01):
    return [
        {"method": "peg", "auc": 0.95, "auc_low": 0.94, "mrr": model,
         "mrr_low": model - spread, "mrr_high": model + spread},
        {"method": "katz", "auc": 0.8, "mrr": 0.01},
        {"method": "adamic_adar", "auc": 0.7, "mrr": heuristic},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("model", "standing"), [(0.4, "ahead of"), (0.305, "about level with"), (0.2, "behind")]
)
def test_each_metric_has_its_own_best_heuristic(model, standing):
    text = summarise_in_words({"random": rows(model, 0.3)})
    assert text == (
        "PEG scores a held-out link above a non-link 95.0% of the time; the best heuristic, Katz, "
        f"80.0%. At the top of the list (MRR) it is {standing} Adamic-Adar: {model:.3f} against "
        "0.300."
    )


def test_hard_non_links_get_a_sentence_of_their_own():
    heart = [{"method": "peg", "mrr": 0.1}, {"method": "katz", "mrr": 0.2}]
    text = summarise_in_words({"random": rows(0.4, 0.3), "heart": heart})
    assert text.endswith(" Among hard non-links it is behind Katz: 0.100 against 0.200.")
    alone = summarise_in_words({"heart": heart})
    assert alone == "At the top of the list (MRR) PEG is behind Katz: 0.100 against 0.200."


def test_what_is_not_known_is_not_said():
    assert summarise_in_words({}) == ""
    only = summarise_in_words({"random": [{"method": "kernel_mean", "auc": 0.6}]})
    assert only == "kernel mean scores a held-out link above a non-link 60.0% of the time."
    lists = [{"method": "light_gcn", "recall@20": 0.25}, {"method": "popularity", "recall@20": 0.1}]
    text = summarise_in_words({"recommend": lists})
    assert text.startswith("At the top of the list (Recall@20) LightGCN is ahead of popularity")
