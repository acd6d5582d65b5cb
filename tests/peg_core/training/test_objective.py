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


def test_auc_squared_is_the_squared_distance_of_the_margins_from_one():
    assert loss("auc_squared") == pytest.approx(((1 - LINKS + OTHERS) ** 2).mean())


@pytest.mark.parametrize("name", ["auc", "auc_squared"])
def test_ranking_ignores_a_shift_of_all_scores(name):
    assert loss(name, LINKS + 7, OTHERS + 7) == pytest.approx(loss(name))


@pytest.mark.parametrize("name", ["auc", "auc_squared"])
def test_ranking_takes_fewer_non_links_than_links(name):
    assert loss(name, LINKS, OTHERS[:2]) == pytest.approx(loss(name, LINKS[:2], OTHERS[:2]))


def test_ranking_holds_every_link_against_all_its_non_links():
    others = np.array([[-1.0, 0.5, 2.5], [0.0, 1.0, -2.0]])  # [rounds, links]
    margins = LINKS - others
    assert loss("auc", others=others.ravel()) == pytest.approx(np.log1p(np.exp(-margins)).mean())
    assert loss("auc_squared", others=others.ravel()) == pytest.approx(((1 - margins) ** 2).mean())
