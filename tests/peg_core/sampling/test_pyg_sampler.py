import networkx as nx
import numpy as np
import pytest
import torch
import torch_geometric.typing
from torch_geometric.data import Data
from torch_geometric.loader import LinkLoader, NodeLoader
from torch_geometric.sampler import NegativeSampling

from peg_core.errors import PegError
from peg_core.sampling.neighbour_sampler import NeighbourSampler
from peg_core.sampling.pyg_sampler import LoaderSampler, PygNeighbourSampler

compiled = torch_geometric.typing.WITH_PYG_LIB or torch_geometric.typing.WITH_TORCH_SPARSE


@pytest.fixture
def graph(to_store):
    return to_store(nx.gnm_random_graph(80, 400, seed=1))


def as_data(graph):
    rows = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    edge_index = torch.from_numpy(np.stack([graph.indices.astype(np.int64), rows]))
    return Data(x=torch.arange(80.0)[:, None], edge_index=edge_index, num_nodes=80)


def test_pygs_link_loader_draws_with_our_kernel(graph):
    data = as_data(graph)
    links = torch.from_numpy(np.stack(graph.edges()).astype(np.int64))
    loader = LinkLoader(
        data,
        LoaderSampler(graph, [4, 3], seed=0),
        edge_label_index=links[:, :64],
        neg_sampling=NegativeSampling("binary"),
        batch_size=16,
    )
    batches = list(loader)
    assert len(batches) == 4
    for batch in batches:
        assert batch.edge_label.tolist() == [1.0] * 16 + [0.0] * 16
        source, target = batch.n_id[batch.edge_index]
        assert graph.contains(source.numpy(), target.numpy()).all()
        assert torch.equal(batch.x[:, 0].long(), batch.n_id)  # rows of the nodes drawn
        known = batch.n_id[batch.edge_label_index[:, :16]]
        assert graph.contains(*known.numpy()).all()
        assert sum(batch.num_sampled_nodes) == len(batch.n_id)
        assert sum(batch.num_sampled_edges) == batch.edge_index.shape[1]
        assert torch.bincount(batch.edge_index[1]).max() <= 4


def test_pygs_node_loader_reaches_all_neighbours(graph):
    sampler = LoaderSampler(graph, [-1], seed=0)
    (batch,) = NodeLoader(as_data(graph), sampler, input_nodes=torch.tensor([7]), batch_size=1)
    neighbours = graph.indices[graph.indptr[7] : graph.indptr[8]]
    assert set(batch.n_id.tolist()) == {7, *neighbours.tolist()}


@pytest.mark.skipif(not compiled, reason="neither pyg-lib nor torch-sparse is installed")
def test_pygs_kernel_finds_the_same_neighbourhoods(graph):
    seeds = np.array([3, 9, 40])
    ours = NeighbourSampler(graph, [-1, -1]).sample(seeds, seed=0)
    theirs = PygNeighbourSampler(graph, [-1, -1]).sample(seeds, seed=0)
    assert set(ours.nodes.tolist()) == set(theirs.nodes.tolist())
    assert ours.counts == theirs.counts
    assert len(ours.sources) == len(theirs.sources)


@pytest.mark.skipif(compiled, reason="a compiled sampler is installed")
def test_asking_for_pygs_kernel_without_it_says_what_to_install(graph):
    with pytest.raises(PegError, match="needs pyg-lib or torch-sparse"):
        PygNeighbourSampler(graph, [2])
