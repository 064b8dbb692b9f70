"""Numbers of [agrawal2008]_, section 6, as printed; tables: metric → series → a number a setting."""

#: Events per second that its prototype exceeds on expensive queries, with runs merged (section 6.3).
PROTOTYPE = 10_000

#: By what factor basic is faster than backtracking: at least on all queries but p2s2, and on that (section 6.2).
LEAST_GAIN, GAIN_ON_P2S2 = 200.0, 1.3

#: Table 2: p1s2, p1s3, p2s2, p2s3, p3s2 and p3s3 at W = 500.
TABLE_2 = {
    "match_length": {"basic": (250, 250, 4.5, 140, 250, 250)},
    "simultaneous_runs": {"basic": (2, 2, 0.01, 2, 2, 2)},
    "matching_percent": {"basic": (61, 61, 100, 67, 67, 66)},
    "construction_percent": {"basic": (39, 39, 0, 33, 33, 34)},
}

#: Table 3: W = 500, 1000, 1500 and 2000.
TABLE_3 = {
    "merged_percent": {
        "p1s3": (47.9, 50.9, 66.6, 75.3),
        "p2s3": (47.8, 48.3, 55.7, 60.4),
        "p3s3": (47.8, 45.8, 44.9, 50.6),
    },
    "seconds_buffer": {
        "p1s3": (11.9, 175.8, 363.6, 670.3),
        "p2s3": (5.4, 62.3, 132.6, 221.3),
        "p3s3": (12.0, 205.4, 454.2, 840.4),
    },
}
