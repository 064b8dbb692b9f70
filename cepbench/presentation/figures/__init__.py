"""Summary tables → charts, static (matplotlib) and interactive (altair). Computes nothing."""
