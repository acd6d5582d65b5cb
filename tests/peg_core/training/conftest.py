from functools import partial

import pytest

from peg_core.kernels.compiled_loops import compiled_loops
from tests.peg_core.training.small_training import build_trainer, write_split


@pytest.fixture
def split(tmp_path):
    return write_split(tmp_path)


@pytest.fixture
def make_trainer(split):
    return partial(build_trainer, split)


@pytest.fixture(params=["compiled", "generic"])
def loops(request):
    """On a CPU as usual, and once more by the operations that a GPU would be asked for."""
    with compiled_loops(allowed=request.param == "compiled"):
        yield request.param
