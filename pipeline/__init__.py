"""What happens, in which order, with which configuration."""
