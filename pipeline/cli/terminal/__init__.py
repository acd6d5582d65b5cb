"""Commands on the terminal itself."""
