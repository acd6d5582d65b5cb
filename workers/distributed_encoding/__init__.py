"""Encodings of one large graph, by many tasks."""
