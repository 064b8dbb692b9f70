"""Row patterns of MATCH_RECOGNIZE, run as automata whose edges are in order of preference."""
