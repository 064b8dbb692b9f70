"""Plan generators: importing this package registers them, those of the default set first."""

from cepbench.planning.planners import (  # isort: skip
    trivial as trivial,
    efreq as efreq,
    greedy as greedy,
    iterative_improvement as iterative_improvement,
    dp_ld as dp_ld,
    zstream as zstream,
    dp_b as dp_b,
    efreq_sets as efreq_sets,
    ikkbz as ikkbz,
    simulated_annealing as simulated_annealing,
    two_phase as two_phase,
    iterative_dp as iterative_dp,
    goo as goo,
    dpccp as dpccp,
    quickpick as quickpick,
    linearized_dp as linearized_dp,
    flips as flips,
)
