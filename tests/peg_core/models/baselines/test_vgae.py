"""VGAE against torch's own distributions."""

import copy

import numpy as np
import torch
from torch.distributions import Normal, kl_divergence

from peg_core.graph.graph_store import GraphStore
from peg_core.layers.message_graph import MessageGraph
from peg_core.models.baselines.vgae import VGAE, divergence
from peg_core.models.model_spec import ModelSpec

NODES = 40


def example(**options):
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    graph = GraphStore.from_edges(*rng.integers(0, NODES, size=(2, 90)), num_nodes=NODES)
    model = VGAE(ModelSpec("vgae", "faithful", 5, num_encodings=1, hidden=6, **options))
    positions = [rng.normal(size=(NODES, 3)).astype(np.float32)]
    messages = MessageGraph.of_graph(graph, positions, model.rule)
    return model, torch.from_numpy(rng.normal(size=(NODES, 5)).astype(np.float32)), messages


def test_the_divergence_is_that_of_torch():
    torch.manual_seed(1)
    mean, log_deviation = torch.randn(2, 30, 6)
    expected = kl_divergence(Normal(mean, log_deviation.exp()), Normal(0.0, 1.0)).sum(-1).mean()
    torch.testing.assert_close(divergence(mean, log_deviation), expected)


def test_training_draws_around_the_mean_that_embeds_elsewhere():
    model, x, messages = example()
    out = x
    with torch.no_grad():
        for layer, convolution in enumerate(model.layers):
            out = convolution.pass_messages(out, out, messages)
            out = out.relu() if layer == 0 else out
        mean, log_deviation = out.chunk(2, dim=-1)
        torch.testing.assert_close(model.eval()(x, messages), mean)
        assert model.take_penalty() is None
        model.train()
        drawn = torch.stack([model(x, messages) for _ in range(20)])
    standard = (drawn - mean) / log_deviation.exp()  # 4,800 values
    assert abs(standard.mean()) < 5 / standard.numel() ** 0.5
    np.testing.assert_allclose(standard.std(), 1, rtol=0.06)


def test_the_penalty_is_taken_once_and_reaches_both_halves():
    model, x, messages = example()
    model.train()(x, messages)
    penalty = model.take_penalty()
    assert model.take_penalty() is None
    copy.deepcopy(model)
    penalty.backward()
    assert (model.layers[1].lin.weight.grad.abs().sum(1) > 0).all()
