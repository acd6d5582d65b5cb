"""Files of artifacts that lie in an object store, and their copies on this machine."""
