"""What a GPU would be asked to do, as far as a machine without one can tell."""

import importlib

import numpy as np
import pytest
import torch

from peg_core.kernels import compiled_loops as switch
from peg_core.kernels.compiled_loops import compiled_loops, compiled_loops_apply
from peg_core.models import MODELS
from peg_core.training import validation_share
from peg_core.training.link_schedule import Share
from peg_core.training.preparation import preparation_threads
from peg_core.training.resident_graphs import ResidentGraphs

CPU, META = torch.device("cpu"), torch.device("meta")
SAMPLED = [kind for kind in MODELS if MODELS[kind].is_local]  # others take whole graphs alone
every_sampled_model = pytest.mark.parametrize("kind", SAMPLED)
every_batching = pytest.mark.parametrize("fan_outs", [None, (5, 5)])
every_training = pytest.mark.parametrize(
    ("kind", "fan_outs"),
    [(kind, None) for kind in MODELS] + [(kind, (5, 5)) for kind in SAMPLED],
)


@every_training
def test_the_generic_path_trains_the_same_model(make_trainer, kind, fan_outs):
    found = []
    for allowed in (True, False):
        with compiled_loops(allowed=allowed):
            trainer = make_trainer(4, kind=kind, fan_outs=fan_outs, batch_size=80)
            found.append((trainer.run_epoch(0), trainer.validate(), trainer.average.weights()))
    (loss, metrics, weights), (other_loss, other_metrics, others) = found
    assert other_loss == pytest.approx(loss, rel=1e-4)
    assert other_metrics == pytest.approx(metrics, abs=1e-3)
    for name, value in weights.items():
        torch.testing.assert_close(others[name], value, rtol=1e-3, atol=1e-4)


@every_training
def test_half_precision_on_the_generic_path_is_close(make_trainer, kind, fan_outs):
    with compiled_loops(allowed=False):
        trainer = make_trainer(4, kind=kind, fan_outs=fan_outs).network.eval()
        step = next(iter(make_trainer(4, kind=kind, fan_outs=fan_outs).source.steps(0)))
        expected = trainer(step)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = trainer(step)
        logits.float().sum().backward()
    torch.testing.assert_close(logits.float(), expected, rtol=0.1, atol=0.1)
    assert all(value.grad.isfinite().all() for value in trainer.parameters())


@pytest.mark.parametrize("learned", [False, True])
@every_training
def test_nothing_of_a_step_is_left_behind_on_another_device(make_trainer, kind, fan_outs, learned):
    trainer = make_trainer(4, kind=kind, fan_outs=fan_outs, learned=learned)
    trainer.network.to(META)
    for step in trainer.source.steps(0, device=META):
        logits = trainer.network(step)
        trainer.objective(logits, step.num_links).backward()
        assert logits.device == META
        assert logits.shape == (step.pairs.shape[1],)
    assert all(value.grad.device == META for value in trainer.network.parameters())


def test_graphs_stay_on_a_device_as_far_as_they_fit(make_trainer):
    view_of = make_trainer(4).source.view_of
    sizes = []
    for fold in range(4):
        alone = ResidentGraphs()
        alone.whole(fold, view_of(fold), META)
        sizes.append(alone.used_bytes)
    resident = ResidentGraphs(most_bytes=sum(sizes[:2]))
    first, second = ([resident.whole(f, view_of(f), META) for f in range(4)] for _ in range(2))
    assert [one is other for one, other in zip(first, second, strict=True)] == [True] * 2 + [
        False
    ] * 2
    assert resident.used_bytes == sum(sizes[:2])
    assert resident.whole(0, view_of(0), CPU) is view_of(0).whole


def test_one_table_of_features_serves_all_folds_of_a_device(make_trainer):
    source = make_trainer(4).source
    table = torch.zeros(75, 2)
    views = [source.view_of(fold) for fold in range(2)]
    for view in views:
        view.__dict__["whole"] = view.whole._replace(x=table)
    resident = ResidentGraphs()
    placed = [resident.whole(fold, view, META) for fold, view in enumerate(views)]
    assert placed[0].x is placed[1].x


@every_sampled_model
def test_edges_are_ordered_for_gradients_only_where_they_are_read(make_trainer, kind):
    def ordered(learned):
        trainer = make_trainer(4, kind=kind, fan_outs=(5, 5), learned=learned)
        step = next(iter(trainer.source.steps(0)))
        return ["reverse" in layer.__dict__ for layer in step.messages]

    read = kind not in ("egnn", "gat", "graph_transformer", "positions_only")
    assert ordered(learned=False) == [False, read]
    assert ordered(learned=True) == [read, read]
    with compiled_loops(allowed=False):
        assert ordered(learned=True) == [False, False]


@pytest.mark.parametrize("average", [0.0, 0.9])
@every_batching
def test_validation_leaves_the_weights_where_the_optimizer_holds_them(
    make_trainer, fan_outs, average
):
    trainer = make_trainer(4, fan_outs=fan_outs, average=average)
    trainer.run_epoch(0)
    before = {name: (v.data_ptr(), v.clone()) for name, v in trainer.model.state_dict().items()}
    trainer.validate()
    for name, value in trainer.model.state_dict().items():
        pointer, values = before[name]
        assert value.data_ptr() == pointer
        assert torch.equal(value, values)
    assert trainer.model.training
    assert all(value.requires_grad for value in trainer.model.parameters())


@every_sampled_model
def test_validation_on_samples_of_all_neighbours_is_that_of_all_nodes(make_trainer, loops, kind):
    found = []
    for most in (1000, 74):  # the graph has 75 nodes
        trainer = make_trainer(4, kind=kind, fan_outs=(-1, -1), most_embedded=most)
        trainer.run_epoch(0)
        model = trainer.average.averaged_model()
        found.append(trainer.source.logits(model, trainer.valid, Share(), CPU))
    np.testing.assert_allclose(found[1], found[0], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("most", [1000, 0])
def test_shares_of_validation_add_up_to_all_of_it(make_trainer, monkeypatch, most):
    monkeypatch.setattr(validation_share, "CHUNK", 3)
    trainer = make_trainer(4, fan_outs=(3, 2), most_embedded=most)
    model, count = trainer.average.averaged_model(), len(trainer.valid.label)
    whole = trainer.source.logits(model, trainer.valid, Share(), CPU)
    parts = np.full(count, np.nan, np.float32)
    for rank in range(3):
        share = Share(rank, 3)
        rows = validation_share.rows_of(count, share)
        assert np.isnan(parts[rows]).all()
        parts[rows] = trainer.source.logits(model, trainer.valid, share, CPU)
    np.testing.assert_allclose(parts, whole, rtol=1e-6)


def test_any_number_of_threads_prepares_the_same_steps(make_trainer):
    losses = [
        make_trainer(4, fan_outs=(3, 2), batch_size=40, threads=threads).run_epoch(0)
        for threads in (1, 4)
    ]
    assert losses[0] == losses[1]


def test_a_gpu_leaves_all_cpus_but_one_to_the_threads_that_prepare():
    gpu = torch.device("cuda:0")
    assert [preparation_threads(cpus, gpu) for cpus in (1, 2, 6)] == [1, 1, 5]
    assert preparation_threads(6, CPU) == 1


@pytest.mark.parametrize(("value", "applies"), [("0", False), ("1", True)])
def test_a_variable_turns_the_compiled_loops_off(monkeypatch, value, applies):
    monkeypatch.setenv("PEG_COMPILED_LOOPS", value)
    importlib.reload(switch)
    try:
        assert compiled_loops_apply(CPU) is applies
    finally:
        monkeypatch.undo()
        importlib.reload(switch)
    assert not compiled_loops_apply(META)
    assert not compiled_loops_apply(CPU, torch.float64)
