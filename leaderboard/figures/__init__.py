"""Figures of a board: what they show (`plots`), and their files (`draw`, which imports
matplotlib).
"""
