"""``medtasks prepare``: from release files to prepared data.

The work is done in a hidden sibling folder, which takes the place of the old one when it is complete; the media
index is written as it grows, so an interrupted command goes on where it stopped.
"""
