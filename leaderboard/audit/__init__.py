"""Questions whose gold answer deserves a second look."""
