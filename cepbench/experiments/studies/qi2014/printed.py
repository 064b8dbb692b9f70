"""Numbers of [qi2014]_, section 6, as printed; its figures print none beside their axes."""

#: By what factor A-Seq is faster than two-step at length 5 (section 6.2).
GAIN_AT_LENGTH_5 = 16_736

#: Milliseconds per slide of A-Seq at length 10 in 2000 ms, and of two-step at length 2 in 100 ms.
MOST_OF_A_SEQ, LEAST_OF_TWO_STEP = 0.0219, 0.02
