"""Samples of a graph that are small enough for one training step."""
