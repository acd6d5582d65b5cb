"""What is made of a finished run apart from its stages."""
