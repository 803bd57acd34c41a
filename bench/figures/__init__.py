"""Figures, what they are compared with, their budgets, and the table that says so."""
