"""A board as files: CSV, JSON, Markdown, LaTeX."""
