"""Numbers of [qi2014]_, section 6, as printed; its figures print none beside their axes."""

#: By what factor A-Seq is faster than two-step at length 5 (section 6.2).
GAIN_AT_LENGTH_5 = 16_736

#: By what factor at least, in its abstract and section 8.
FOUR_ORDERS = 10_000

#: By what factor shared construction of matches is slower than A-Seq on each query (section 6.3).
BEHIND = 100

#: Bytes of the machine's memory (section 6.1), which two-step overflows from length 6 on.
MEMORY = 4 * 2**30
