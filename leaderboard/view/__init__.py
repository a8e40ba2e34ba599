"""``medtasks view``: the board's pages from a local server, with every sample, its media, and runs
under way.
"""
