"""Jobs of a Ray cluster."""
