"""Counts of the matches of sequences without listing them."""
