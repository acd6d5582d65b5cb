"""A run on one page: `report.html`, readable without the artifacts and without a network."""
