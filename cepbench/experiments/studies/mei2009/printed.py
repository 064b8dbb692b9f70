"""Numbers of [mei2009]_ as printed: series → setting → number."""

#: Seconds that Algorithm 5 takes less than, by event classes (section 5.2.3).
PLAN_SECONDS = {"ZSTREAM": {"20": 0.01}}

#: Table 3: peak memory in bytes; of what, the paper does not say.
PEAK_BYTES = {
    plan: {"1:100:100:100": 1e6 * rare, "sel1 = 1/50": 1e6 * selective}
    for plan, rare, selective in (
        ("left-deep", 7.36, 7.06),
        ("right-deep", 7.15, 6.51),
        ("bushy", 6.72, 6.73),
        ("inner", 7.58, 6.47),
        ("NFA", 6.70, 6.55),
    )
}
