"""Random graphs, and tables that go with them."""
