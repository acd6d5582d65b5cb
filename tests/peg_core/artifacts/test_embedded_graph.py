import numpy as np
import pytest

from peg_core.artifacts.embedded_graph import EmbeddedGraph, Embeddings
from peg_core.artifacts.positions import Positions
from peg_core.errors import ArtifactMismatch, InputError


def test_the_last_layer_is_the_embedding(tmp_path):
    embeddings = Embeddings(tmp_path)
    for layer in range(2):
        embeddings.allocate(embeddings.layer_file(layer), (5, 3), "float32")
    last = np.load(embeddings.layer_file(1), mmap_mode="r+")
    last[:] = 7
    last.flush()
    np.testing.assert_array_equal(embeddings.array(), np.full((5, 3), 7))


def test_a_folder_without_embeddings_says_so(tmp_path):
    with pytest.raises(InputError, match=r"holds no embeddings; run `peg run` first"):
        Embeddings(tmp_path).array()


def test_positions_of_another_graph_are_refused(tmp_path, two_communities):
    Positions(tmp_path).write(np.zeros((9, 2), np.float32), 0)
    with pytest.raises(ArtifactMismatch, match="found 9 nodes"):
        EmbeddedGraph.of(two_communities, Positions(tmp_path), Embeddings(tmp_path))
