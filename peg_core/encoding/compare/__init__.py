"""Two encodings of the same nodes, side by side."""
