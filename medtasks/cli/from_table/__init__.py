"""``medtasks new NAME --from ROWS``: a benchmark folder from a table of questions."""
