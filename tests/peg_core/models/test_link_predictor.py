"""What a specification makes of a model."""

import pytest
import torch

from peg_core.models import MODELS
from peg_core.models.baselines import BASELINES
from peg_core.models.model_spec import ModelSpec


def spec(kind="peg", preset="best", **values):
    return ModelSpec(kind, preset, 8, num_encodings=1, hidden=8, encoding_widths=[4], **values)


def shares(model):
    """Of input, layers and head."""
    head = [module.p for module in model.head.modules() if isinstance(module, torch.nn.Dropout)]
    return model.input_dropout, model.dropout, *set(head)


@pytest.mark.parametrize("kind", MODELS)
def test_the_preset_decides_on_dropout_where_none_is_given(kind):
    best = (0, 0, 0) if kind in BASELINES else (0.3, 0.5, 0.1)
    assert shares(MODELS[kind](spec(kind, head="mlp"))) == best
    assert shares(MODELS[kind](spec(kind, preset="faithful", head="mlp"))) == (0, 0, 0)


@pytest.mark.parametrize("preset", ["best", "faithful"])
@pytest.mark.parametrize("head", ["mlp", "structural"])
def test_a_given_dropout_replaces_the_preset_and_spares_the_input(preset, head):
    assert shares(MODELS["peg"](spec(preset=preset, head=head, dropout=0.2))) == (0, 0.2, 0.2)


def test_a_wider_head_has_that_many_hidden_units():
    narrow, wide = (MODELS["peg"](spec(head="mlp", head_width=width)) for width in (64, 256))
    assert narrow.head.network[0].out_features == 64
    assert wide.head.network[0].out_features == 256
