"""Damage of every kind that a user may bring to ``peg``, and what should come of it."""
