"""Ray tasks, one file per stage."""
