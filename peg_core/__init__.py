"""What it means: graphs, encodings, layers, models, metrics. No Ray, no YAML, no pydantic."""
