"""What a training is put together from, and where it runs."""
