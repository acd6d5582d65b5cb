import numpy as np
import pytest

from peg_core.artifacts.positions import Positions
from peg_core.errors import ArtifactMismatch


def test_every_encoding_and_fold_comes_back_as_it_was_written(tmp_path):
    rng = np.random.default_rng(0)
    positions = Positions(tmp_path)
    written = {
        (encoding, fold): rng.normal(size=(9, 2 + encoding)).astype(np.float32)
        for encoding in range(2)
        for fold in (-1, 0, 1)
    }
    for (encoding, fold), array in written.items():
        positions.write(array, encoding, fold)
    opened = Positions.open(tmp_path)
    assert (opened.num_encodings, opened.widths()) == (2, [2, 3])
    for fold in (-1, 0, 1):
        for encoding, array in enumerate(opened.arrays(num_nodes=9, fold=fold)):
            np.testing.assert_array_equal(array, written[encoding, fold])


def test_positions_of_another_graph_are_refused(tmp_path):
    Positions(tmp_path).write(np.zeros((9, 2), np.float32), 0)
    with pytest.raises(ArtifactMismatch, match=r"positions .* and the graph"):
        Positions(tmp_path).arrays(num_nodes=10)


def test_names_tell_encodings_and_folds_apart():
    names = {Positions.name(encoding, fold) for encoding in range(3) for fold in (-1, 0, 1)}
    assert len(names) == 9
