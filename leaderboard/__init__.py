"""From result directories to rankings, tables, figures, exports and the site."""
