"""A Ray of our own, on this machine."""
