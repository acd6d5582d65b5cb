"""Artifacts, their manifests and leases, in a folder or an object store."""
