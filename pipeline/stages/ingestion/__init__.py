"""Ingestion step by step."""
