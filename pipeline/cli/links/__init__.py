"""Commands on predicted links."""
