"""Eigenvectors of the normalised Laplacian: solvers, filters, checks."""
