"""Compiled loops that several rooms share, or that are files of their own.

Nothing else of this package is imported here. A small loop that only one file calls stands
in that file.
"""
