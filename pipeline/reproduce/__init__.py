"""Experiments: grids of pipelines whose results make one table and one page."""
