"""Graphs: how they are read, numbered and stored."""

from peg_core.graph.graph_store import CsrSlice, GraphStore
from peg_core.graph.ids.node_ids import NodeIds

__all__ = ["CsrSlice", "GraphStore", "NodeIds"]
