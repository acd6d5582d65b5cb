"""What decides whether indexes are built again."""

import pytest

from pipeline.config.result_sections import RecommendConfig
from pipeline.stages import index, recommend


def with_recommend(config, **settings):
    return config.model_copy(update={"recommend": RecommendConfig(**settings)})


def test_indexes_of_the_default_kind_are_those_of_older_stores(small_pipeline):
    assert index.settings(with_recommend(small_pipeline)) == {"graph": "all"}


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_another_kind_is_another_index_and_no_other_question(small_pipeline, dtype):
    plain, chosen = (with_recommend(small_pipeline, **s) for s in ({}, {"index_dtype": dtype}))
    assert index.settings(plain) != index.settings(chosen)
    assert recommend.settings(plain) == recommend.settings(chosen)


def test_lists_of_another_kind_have_indexes_of_their_own(small_pipeline):
    kinds = small_pipeline.model_copy(update={"recommend": RecommendConfig(**{"for": "item"})})
    assert index.settings(kinds) == {"graph": "all", "for": "item"}
    assert recommend.settings(kinds)["recommend"]["for"] == "item"


@pytest.mark.parametrize("key", ["for", "made_for", "allowed", "exclude", "least_score"])
def test_what_came_later_is_in_no_older_fingerprint(small_pipeline, key):
    assert key not in recommend.settings(with_recommend(small_pipeline))["recommend"]
