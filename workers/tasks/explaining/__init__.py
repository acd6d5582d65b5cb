"""Reasons for scores, as Ray tasks."""
