"""What baselines ask of training: a penalty, whole graphs."""

import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from peg_core.errors import ConfigError
from peg_core.random_streams import stream_seed


def test_the_loss_of_a_step_holds_the_divergence(make_trainer):
    trainer = make_trainer(1, kind="vgae")
    step = next(iter(trainer.source.steps(0)))
    found = trainer._gradients(step)
    torch.manual_seed(stream_seed(seed=0, purpose="dropout", shard=step.number))
    logits = trainer.network.train()(step)
    labels = step.labels
    alone = binary_cross_entropy_with_logits(logits, labels)
    assert found == pytest.approx((alone + trainer.model.take_penalty()).item(), rel=1e-5)
    assert found > alone.item() + 1e-3


def test_p_gnn_learns_from_whole_graphs(make_trainer):
    trainer = make_trainer(1, kind="p_gnn", learned=True)
    losses = [trainer.run_epoch(epoch) for epoch in range(40)]
    assert losses[-1] < 0.9 * losses[0]
    assert trainer.validate()["auc"] > 0.7


@pytest.mark.parametrize("options", [{"fan_outs": (2, 2)}, {"masked": True, "batch_size": 30}])
def test_p_gnn_refuses_a_part_of_a_graph(make_trainer, options):
    trainer = make_trainer(1, kind="p_gnn", **options)
    with pytest.raises(ConfigError, match="p_gnn reads the whole graph in every step"):
        trainer.run_epoch(0)
