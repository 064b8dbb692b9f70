"""From a pattern and its statistics to a plan: statistics, workloads, plans, costs, planners, SQL."""
