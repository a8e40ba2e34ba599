"""Figures of a board: what they show (`plots`), their shapes, and as files (`draw`, which imports
matplotlib).
"""
