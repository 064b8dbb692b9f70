"""Compiled loops of row patterns: the search for matches, and the rows that their measures read."""
