"""Runs at set times."""
