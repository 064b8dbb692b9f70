"""Planners of workloads: each chooses the cuts of the queries, and whether segments share prefixes."""
