import pytest
import torch

from peg_core.training.learning_rate import SCHEDULES, set_learning_rate


def test_a_linear_schedule_falls_evenly_towards_zero():
    rates = [SCHEDULES["linear"](epoch, 4) for epoch in range(4)]
    assert rates == pytest.approx([1, 0.75, 0.5, 0.25])


def test_a_constant_schedule_stays():
    assert {SCHEDULES["constant"](epoch, 7) for epoch in range(7)} == {1.0}


def test_the_rate_is_the_size_of_a_move():
    weight = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1)
    set_learning_rate(optimizer, 0.25)
    weight.sum().backward()
    optimizer.step()
    assert weight.item() == -0.25
