"""Compiled loops; nothing of ours is imported here."""
