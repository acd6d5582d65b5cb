"""Parquet files of generated graphs."""
