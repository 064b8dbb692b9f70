"""Numbers that the text of [liu2011]_ prints about its experiments; its figures have none."""

#: Seconds in which Chase constructs the graph of Figure 19's queries and finds the plan, section VII-E.
PRINTED_PLANNING = 0.016
