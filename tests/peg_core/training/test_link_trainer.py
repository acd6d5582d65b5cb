import numpy as np
import pytest
import torch

from peg_core.models import MODELS
from peg_core.sampling.neighbour_sampler import NeighbourSampler
from peg_core.training.link_schedule import Share


def links_of(split):
    """Every training link once, in order."""
    return list(zip(*(end.tolist() for end in split.train_graph().edges()), strict=True))


@pytest.mark.parametrize("folds", [1, 4])
@pytest.mark.parametrize("fan_outs", [None, (5, 5)])
def test_training_separates_links_from_non_links(make_trainer, folds, fan_outs):
    fitted = make_trainer(folds, fan_outs=fan_outs)
    losses = [fitted.run_epoch(epoch) for epoch in range(15)]
    assert losses[-1] < losses[0]
    assert fitted.validate()["auc"] > 0.75


@pytest.mark.parametrize("options", [{"objective": "auc"}, {"accumulate": 3}, {"learned": True}])
def test_other_ways_of_training_learn_too(make_trainer, options):
    fitted = make_trainer(4, fan_outs=(5, 5), batch_size=40, **options)
    losses = [fitted.run_epoch(epoch) for epoch in range(12)]
    assert losses[-1] < losses[0]
    assert fitted.validate()["auc"] > 0.7


@pytest.mark.parametrize("batch_size", [None, 20])
def test_an_epoch_supervises_every_training_link_once_without_its_fold(
    make_trainer, split, batch_size
):
    source = make_trainer(4, batch_size=batch_size).source
    seen = []
    for step in source.schedule.epoch(3):
        links = step.source[: step.num_links], step.target[: step.num_links]
        assert not source.view_of(step.fold).graph.contains(*links).any()
        seen += zip(*(end.tolist() for end in links), strict=True)
    assert sorted(seen) == links_of(split)


@pytest.mark.parametrize("folds", [1, 4])
def test_every_epoch_deals_the_links_anew(make_trainer, split, folds):
    schedule = make_trainer(folds, batch_size=20).source.schedule
    epochs = [[tuple(step.source[: step.num_links]) for step in schedule.epoch(e)] for e in (0, 1)]
    assert epochs[0] != epochs[1]
    assert epochs[0] == [tuple(step.source[: step.num_links]) for step in schedule.epoch(0)]
    late = [tuple(step.source[: step.num_links]) for step in schedule.epoch(0, start=3)]
    assert late == epochs[0][3:]


@pytest.mark.parametrize("batch_size", [None, 30])
def test_two_shares_supervise_every_link_once(make_trainer, split, batch_size):
    seen = []
    for rank in (0, 1):
        schedule = make_trainer(4, share=Share(rank, 2), batch_size=batch_size).source.schedule
        for step in schedule.epoch(0):
            links = np.stack([step.source, step.target])[:, : step.num_links]
            seen += list(map(tuple, links.T.tolist()))
            free = (step.source[step.num_links :], step.target[step.num_links :])
            assert not split.train_graph().contains(*free).any()
    assert sorted(seen) == links_of(split)


@pytest.mark.parametrize("fan_outs", [None, (3, 2)])
def test_two_runs_with_one_seed_are_the_same(make_trainer, fan_outs):
    first = make_trainer(4, fan_outs=fan_outs, batch_size=40)
    second = make_trainer(4, fan_outs=fan_outs, batch_size=40)
    assert [first.run_epoch(e) for e in range(2)] == [second.run_epoch(e) for e in range(2)]


@pytest.mark.parametrize("kind", ["peg", "vgae", "graph_transformer"])
def test_an_epoch_that_goes_on_in_its_middle_is_the_same(make_trainer, loops, kind):
    whole = make_trainer(4, fan_outs=(3, 2), batch_size=40, kind=kind)
    losses = []
    for done, new in whole.moves(0):
        losses += new
        if done == 3:
            weights = {n: v.clone() for n, v in whole.model.state_dict().items()}
            slots = {
                k: {n: v.clone() for n, v in values.items()}
                for k, values in whole.optimizer.state_dict()["state"].items()
            }
    again = make_trainer(4, fan_outs=(3, 2), batch_size=40, kind=kind)
    again.model.load_state_dict(weights)
    groups = again.optimizer.state_dict()["param_groups"]
    again.optimizer.load_state_dict({"state": slots, "param_groups": groups})
    assert [loss for _, new in again.moves(0, start=3) for loss in new] == losses[3:]
    for name, value in whole.model.state_dict().items():
        torch.testing.assert_close(again.model.state_dict()[name], value, rtol=0, atol=0)


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("kind", [kind for kind in MODELS if MODELS[kind].is_local])
def test_minibatch_with_all_neighbours_equals_full_graph(make_trainer, loops, kind, learned):
    """Values and gradients, for every model."""
    full = make_trainer(4, kind=kind, learned=learned)
    sampled = make_trainer(4, kind=kind, fan_outs=(-1, -1), learned=learned)
    for one, other in zip(full.source.steps(0), sampled.source.steps(0), strict=True):
        found = []
        for trainer, step in ((full, one), (sampled, other)):
            trainer.network.train()
            for module in trainer.network.modules():
                if isinstance(module, torch.nn.Dropout):
                    module.p = 0.0
            trainer.model.dropout = trainer.model.input_dropout = 0.0
            trainer.model.noise = 0.0  # of vgae
            torch.manual_seed(0)  # the signs of graph_transformer
            trainer.network.zero_grad()
            logits = trainer.network(step)
            trainer.objective(logits, step.num_links).backward()
            gradients = [p.grad for p in trainer.network.parameters() if p.grad is not None]
            found.append((logits, gradients))
        torch.testing.assert_close(found[0][0], found[1][0], atol=1e-5, rtol=1e-5)
        for mine, theirs in zip(found[0][1], found[1][1], strict=True):
            torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", ["peg", "pe_sage"])
def test_the_mean_of_many_samples_approaches_the_full_sum(make_trainer, kind):
    """One layer is linear in its messages, so its expectation is the full-graph value."""
    trainer = make_trainer(1, kind=kind, fan_outs=(4, 4))
    view = trainer.source.view_of(-1)
    model = trainer.model.eval()
    seeds = np.arange(20)
    full = NeighbourSampler(view.graph, [-1])
    sampler = NeighbourSampler(view.graph, [4])

    def layer(sampled):
        (messages,) = view.layers(sampled)
        x, _ = view.node_inputs(sampled.nodes)
        return model.layers[0].pass_messages(x, x[:20], messages).detach().numpy()

    exact = layer(full.sample(seeds, seed=0))
    draws = np.stack([layer(sampler.sample(seeds, seed=s)) for s in range(1500)])
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - exact) < 5 * error + 1e-5).all()
    assert draws.std(axis=0).max() > 1e-3  # samples do differ


def test_links_that_supervise_are_in_no_message(make_trainer):
    """Counted, with folds and without, in every edge of every layer."""
    for folds in (1, 4):
        trainer = make_trainer(folds, fan_outs=(-1, -1), batch_size=60)
        schedule = trainer.source.schedule
        for supervision, step in zip(schedule.epoch(0), trainer.source.steps(0), strict=True):
            links = {
                frozenset(pair)
                for pair in zip(
                    supervision.source[: supervision.num_links].tolist(),
                    supervision.target[: supervision.num_links].tolist(),
                    strict=True,
                )
            }
            nodes = step.nodes.numpy()
            edges = step.messages[0].edge_index.numpy()
            seen = {frozenset(pair) for pair in zip(*nodes[edges].tolist(), strict=True)}
            assert len(seen) > len(links)
            assert not links & seen
