"""What a model adds to the loss."""

import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from peg_core.random_streams import stream_seed


def test_the_loss_of_a_step_holds_the_divergence(make_trainer):
    trainer = make_trainer(1, kind="vgae")
    step = next(iter(trainer.source.steps(0)))
    found = trainer._gradients(step)
    torch.manual_seed(stream_seed(seed=0, purpose="dropout", shard=step.number))
    logits = trainer.network.train()(step)
    labels = step.labels
    alone = binary_cross_entropy_with_logits(logits, labels)
    assert found == pytest.approx(float(alone + trainer.model.take_penalty()), rel=1e-5)
    assert found > float(alone) + 1e-3
