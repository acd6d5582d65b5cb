"""Non-links to learn from, of several kinds."""
