"""Counts of pairs and triples of events whose neighbours are compared, by trees over ranks of values.

The items are two that are compared, or three of which the middle one is compared with either neighbour, or
both, by the same value of its own. So many histories end in an event of the middle item as it has first
events: the number falls by one with each first event that expires and passes the comparison, for the
oldest event was before all others. Expired first events are *marks* in a tree over ranks of values; a
node has the sum of the numbers of its events::

    sum of both halves - marks in one half * events in the other one that pass the comparison

and an event of the last item adds up those of a range of values. All of this takes time in proportion to
the logarithm of the number of events in the window. The matches of an expiring first event, to be
subtracted from those in the window, are counted likewise: events of the last item are marks in a second
tree, of how many histories go on from an event of the middle item.

An event that is forbidden between two items removes the earlier item's events before it from the tree,
each of them once. Marks then are of first events before the oldest such event in the window, and middle ones behind it
wait in a tree without marks until it expires. Middle events that no longer go on are in such a tree as well, until
first events before them have expired. Of two items with NOT between them the earlier one is the middle one, in
which one history ends. If what is forbidden is compared with the item before it, that is the middle one, whose
events are in a heap: a forbidden event closes those with the smallest or the greatest values.

Ranks are those of a chunk of events about as long as the window, and of those in the window before it. Behind
a chunk marks are subtracted from the numbers of events, and trees are built anew. A chunk of few events takes
no trees: each of its events is compared with all in the window.

Of an AND an event completes matches as any item, with those before it, and those that it was in go with
it. An event of the middle item has two numbers, of the first and of the last items that it passes with: those
that enter are marks of the opposite sign, and an event of the first item adds up how many of the last one
there are with the events of the middle item that it passes with.

The largest weights of events in matches take trees of another kind, from which nothing is subtracted, see
:mod:`cepbench.engines.sequence_counts.kernels.order_statistics.extremes`.
"""
