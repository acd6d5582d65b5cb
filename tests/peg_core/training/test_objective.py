"""Objectives against plain numpy."""

import numpy as np
import pytest
import torch
from sklearn.metrics import log_loss

from peg_core.training.objective import OBJECTIVES

LINKS = np.array([2.0, -0.5, 3.0])
OTHERS = np.array([-1.0, 0.5, 2.5])


def loss(name, links=LINKS, others=OTHERS):
    return OBJECTIVES[name](torch.from_numpy(np.concatenate([links, others])), len(links)).item()


def test_bce_is_the_log_loss_of_the_probabilities():
    probabilities = 1 / (1 + np.exp(-np.concatenate([LINKS, OTHERS])))
    assert loss("bce") == pytest.approx(log_loss([1, 1, 1, 0, 0, 0], probabilities))


def test_auc_is_the_log_loss_of_the_margins():
    assert loss("auc") == pytest.approx(np.log1p(np.exp(OTHERS - LINKS)).mean())


def test_ranking_ignores_a_shift_of_all_scores():
    assert loss("auc", LINKS + 7, OTHERS + 7) == pytest.approx(loss("auc"))


def test_ranking_takes_fewer_non_links_than_links():
    assert loss("auc", LINKS, OTHERS[:2]) == pytest.approx(loss("auc", LINKS[:2], OTHERS[:2]))
