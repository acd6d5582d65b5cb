"""What commands print beyond a line."""
