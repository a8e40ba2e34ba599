"""Figures drawn by matplotlib: the style that all share, each kind of shape, and image files."""
