"""`peg init`: the first pipeline file."""
