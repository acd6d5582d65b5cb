"""Commands on the results of a finished run."""
