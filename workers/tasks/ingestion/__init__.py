"""Ingestion: nodes get numbers, rows become a graph."""
