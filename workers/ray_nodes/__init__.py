"""What Ray tells of the machines of a cluster."""
