"""A first configuration for tables that nobody has described yet."""
