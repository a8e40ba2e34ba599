"""A run's responses scored by the data and the rules of this machine: once, for every command and
for boards.
"""
