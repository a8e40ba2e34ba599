"""Rubrics: what a judge is shown, on which scales it judges, and how its scores are summed."""
