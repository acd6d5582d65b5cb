"""What ``peg doctor`` looks at beyond this machine."""
