from dataclasses import fields

import pytest

from peg_core.models.model_spec import ModelSpec
from peg_core.training.settings import ModelSettings, Optimisation, Sampling
from pipeline.config.model_sections import ModelConfig, TrainConfig
from pipeline.config.pipeline_config import ClusterConfig
from workers.cluster_settings import ClusterSettings
from workers.tasks.train import TrainRequest


def test_the_sections_of_a_pipeline_file_have_the_defaults_of_the_settings():
    assert ModelConfig().settings() == ModelSettings()
    assert TrainConfig().optimisation() == Optimisation()
    assert TrainConfig().sampling() == Sampling()
    assert ClusterConfig().settings() == ClusterSettings()


def test_what_a_pipeline_file_says_arrives():
    train = TrainConfig(lr=0.1, average=0.5, fan_outs=[3, 4], negatives="hard", metric="hits@20")
    assert train.optimisation() == Optimisation(lr=0.1, average=0.5, metric="hits@20")
    assert train.sampling() == Sampling(fan_outs=(3, 4), negatives="hard")
    assert ModelConfig(hidden=8, head="mlp").settings() == ModelSettings(hidden=8, head="mlp")
    assert ClusterConfig(task_memory="3GB").settings().task_memory_bytes == 3 * 10**9


def test_a_model_gets_its_widths_from_the_graph():
    spec = ModelSettings(layers=3, dropout=0.1).spec(in_channels=5, num_encodings=2)
    assert spec == ModelSpec("peg", "best", 5, 2, layers=3, dropout=0.1)


@pytest.mark.parametrize(("layers", "hops"), [(1, (15,)), (3, (15, 10, 10))])
def test_fan_outs_are_chosen_for_every_layer(layers, hops):
    assert Sampling().hops(layers) == hops
    assert Sampling(fan_outs=(7,)).hops(layers) == (7,)


def test_a_training_is_asked_for_in_a_few_words():
    assert len(fields(TrainRequest)) <= 8
