"""Where it happens: the only package that computes with Ray."""
