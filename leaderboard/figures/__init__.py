"""Figures of a board: what they show (`chosen`), and as files (`draw`, which imports matplotlib)."""
