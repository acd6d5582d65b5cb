"""``peg reproduce``."""
