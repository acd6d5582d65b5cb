"""``python -m pipeline`` is the command `peg`."""

from pipeline.cli.app import main

if __name__ == "__main__":
    main()
