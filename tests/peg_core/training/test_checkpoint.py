import numpy as np
import pytest
import torch

from peg_core.models.model_spec import ModelSpec
from peg_core.models.peg import PEG
from peg_core.training.checkpoint import (
    TrainingState,
    is_damaged,
    read_checkpoint,
    write_checkpoint,
)
from peg_core.training.weight_average import WeightAverage


def build():
    torch.manual_seed(0)
    model = PEG(ModelSpec("peg", "best", in_channels=3, num_encodings=1, hidden=4))
    return WeightAverage(model, 0.5), torch.optim.Adam(model.parameters(), lr=0.1)


def step(average, optimizer):
    optimizer.zero_grad()
    sum((p**2).sum() for p in average.model.parameters()).backward()
    optimizer.step()
    average.update()


def test_going_on_from_a_checkpoint_equals_never_stopping(tmp_path):
    average, optimizer = build()
    step(average, optimizer)
    state = TrainingState(3, 7, [0.5, 0.25], 0.9, 2, [{"epoch": 2, "loss": 0.1, "valid_auc": 0.9}])
    state.best = average.weights()
    write_checkpoint(tmp_path / "c.safetensors", state, average, optimizer)
    step(average, optimizer)

    other, other_optimizer = build()
    step(other, other_optimizer)
    step(other, other_optimizer)
    loaded = read_checkpoint(tmp_path / "c.safetensors", other, other_optimizer)
    step(other, other_optimizer)
    assert (loaded.epoch, loaded.step, loaded.losses) == (3, 7, [0.5, 0.25])
    assert (loaded.best_value, loaded.best_epoch) == (0.9, 2)
    assert loaded.history == state.history
    assert loaded.best.keys() == state.best.keys()
    for name, value in average.model.state_dict().items():
        torch.testing.assert_close(other.model.state_dict()[name], value, rtol=0, atol=0)
    for name, value in average.values.items():
        torch.testing.assert_close(other.values[name], value, rtol=0, atol=0)


def test_without_a_file_training_starts_afresh(tmp_path):
    assert read_checkpoint(tmp_path / "none", *build()).epoch == 0


def write(path):
    average, optimizer = build()
    step(average, optimizer)
    write_checkpoint(path, TrainingState(3, best=average.weights()), average, optimizer)


def test_the_same_state_is_the_same_file(tmp_path):
    for number in range(8):
        write(tmp_path / str(number))
    assert len({(tmp_path / str(number)).read_bytes() for number in range(8)}) == 1


@pytest.mark.parametrize("seed", range(40))
def test_a_flipped_bit_or_a_lost_end_means_to_start_afresh(tmp_path, seed):
    file = tmp_path / "c.safetensors"
    write(file)
    assert not is_damaged(file)
    data = bytearray(file.read_bytes())
    rng = np.random.default_rng(seed)
    if seed % 4:
        data[rng.integers(len(data))] ^= 1 << rng.integers(8)
    else:
        del data[rng.integers(len(data)) :]
    file.write_bytes(data)
    average, optimizer = build()
    before = average.weights()
    assert is_damaged(file)
    assert read_checkpoint(file, average, optimizer) == TrainingState()
    assert optimizer.state_dict()["state"] == {}
    for name, value in before.items():
        torch.testing.assert_close(average.weights()[name], value, rtol=0, atol=0)
