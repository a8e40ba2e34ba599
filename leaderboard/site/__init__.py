"""The static site: pages, their style sheet and scripts."""
