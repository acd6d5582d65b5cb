"""The pipeline file: its sections, how it is read, and what is wrong with it."""
