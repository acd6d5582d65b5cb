"""From the ids that users know to the numbers of nodes, and back."""
