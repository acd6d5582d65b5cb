"""What random walks say of nodes: skip-gram and its factorised forms."""
