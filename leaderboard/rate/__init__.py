"""``medtasks rate``: people rate answers, or gold answers, in a browser, without knowing whose they
are.
"""
