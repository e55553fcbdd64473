"""Figures: each takes what the reader or an analysis gives and returns a matplotlib Figure."""
