"""How large a run is: what is automatic, what it will take, whether it fits."""
