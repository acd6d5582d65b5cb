"""Scores of pairs that need no training."""

from peg_core.heuristics.pair_heuristics import HEURISTICS, heuristic_scores

__all__ = ["HEURISTICS", "heuristic_scores"]
