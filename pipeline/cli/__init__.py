"""The command `peg`, one file per subcommand."""
