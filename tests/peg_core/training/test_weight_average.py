import numpy as np
import pytest
import torch

from peg_core.models.model_spec import ModelSpec
from peg_core.models.peg import PEG
from peg_core.training.weight_average import WeightAverage


@pytest.fixture
def model():
    torch.manual_seed(0)
    return PEG(ModelSpec("peg", "best", in_channels=3, num_encodings=1, hidden=4))


def set_all(model, value):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(value)


def test_the_mean_follows_the_weights_with_the_decay(model):
    average = WeightAverage(model, 0.25)
    expected = None
    for move, value in enumerate([1.0, 3.0, -2.0, 5.0, 0.5], start=1):
        set_all(model, value)
        average.update()
        keep = min(0.25, move / (9 + move))
        expected = value if expected is None else keep * expected + (1 - keep) * value
    for name, _ in model.named_parameters():
        np.testing.assert_allclose(average.weights()[name].numpy(), expected, rtol=1e-6)


def test_the_mean_is_in_a_copy_and_the_model_stays_as_it_is(model):
    average = WeightAverage(model, 0.9)
    for value in (1.0, 2.0):
        set_all(model, value)
        average.update()
    averaged = average.averaged_model()
    assert 1.0 < float(averaged.layers[0].bias[0]) < 2.0
    assert not averaged.training
    assert float(model.layers[0].bias[0].detach()) == 2.0
    assert model.training


def test_without_decay_the_weights_are_kept_as_they_are(model):
    average = WeightAverage(model, 0.0)
    set_all(model, 4.0)
    average.update()
    assert float(average.weights()["layers.0.bias"][0]) == 4.0


def test_training_keeps_the_averaged_weights_of_its_best_epoch(make_trainer):
    trainer = make_trainer(4, average=0.9)
    trainer.run_epoch(0)
    kept = trainer.average.weights()["layers.0.linear.weight"]
    assert not torch.equal(kept, trainer.model.layers[0].linear.weight)
    assert trainer.validate()["auc"] > 0.4
    torch.testing.assert_close(trainer.average.weights()["layers.0.linear.weight"], kept)
