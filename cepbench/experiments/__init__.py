"""Sweeps, their analysis, the studies of the papers, and checks of user-defined parts."""
