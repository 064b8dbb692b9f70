"""Numbers of [qi2014]_, section 6, as printed; its figures print none beside their axes."""

#: By what factor A-Seq is faster than two-step at length 5 (section 6.2).
GAIN_AT_LENGTH_5 = 16_736

#: Milliseconds per slide of A-Seq at length 10 in 2000 ms, and of two-step at length 2 in 100 ms.
MOST_OF_A_SEQ, LEAST_OF_TWO_STEP = 0.0219, 0.02

#: By what factors shared construction is faster than two-step (section 6.3).
GAINS_OF_CONSTRUCTION = (2, 3)

#: Length of what three queries share → by what factor sharing it is faster (section 6.3).
GAINS_OF_PREFIXES = {2: 3.0, 6: 5.0}
GAINS_OF_TAILS = {2: 1.3, 6: 2.6}

#: By what factor sharing is faster, whatever the number of queries (section 6.3).
GAIN_OF_QUERIES = 2.0

#: Milliseconds per slide that a shared prefix saves with two queries, and with six.
SAVED_BY_QUERIES = (0.027, 0.051)
