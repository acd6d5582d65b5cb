"""The commands of ``peg generate`` for graphs whose nodes or links are not all alike."""
