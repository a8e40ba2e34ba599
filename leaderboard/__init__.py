"""From result folders to tables, figures and the static site; ``reference/`` will hold published figures."""
