"""What a run of an engine is and gives: protocol, results, matches as lists, tables and graphs, snapshots."""
