"""From result folders to rankings, tables, figures, exports and the site; ``reference/`` holds published figures."""
