"""All kernels compiled beforehand: nothing that is run later has to wait for one."""

from __future__ import annotations

from cepbench.evaluators.engine import warm_up
from cepbench.experiments.measure import load_kernels
from cepbench.planners.registry import PLAN_GENERATORS


def compile_kernels() -> None:
    """Compile what evaluators and plan generators need, or load it from the disk cache.

    ``make env`` does so, and a sweep before it starts its workers.
    """
    warm_up()
    for generator in PLAN_GENERATORS.values():
        if generator.is_builtin:
            load_kernels(generator)


if __name__ == "__main__":
    compile_kernels()
