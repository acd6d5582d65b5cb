"""Memory of the processes that compute: what they hold, and what they keep for later."""
