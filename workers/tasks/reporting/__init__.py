"""What a report shows of nodes and pairs."""
