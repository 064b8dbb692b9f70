"""What is compiled beforehand is all that plan generators, evaluators and aggregation methods call."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

#: Run in a process of its own, where no other test has loaded a kernel before.
CODE = """
import pkgutil
from copy import deepcopy
from importlib import import_module
from types import CodeType, FunctionType, ModuleType

import numpy as np
from numba.core.dispatcher import Dispatcher

import cepbench as cep
from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.costs.throughput import Throughput
from cepbench.errors import PlanningRefusedError
from cepbench.experiments.sweeps.warm_up import compile_kernels
from cepbench.planning.planners.budget import Budget
from cepbench.planning.planners.generate import plan_problem
from cepbench.planning.planners.registry import PLAN_GENERATORS
from cepbench.streams.ten_symbols import ten_symbols
from tests import golden

found = [its for its in pkgutil.walk_packages(cep.__path__, "cepbench.") if "__main__" not in its.name]
modules = [import_module(module.name) for module in found if ".kernels." in module.name]


def loaded():
    return {
        (module.__name__, name, str(signature))
        for module in modules
        for name, kernel in vars(module).items()
        for signature in getattr(kernel, "signatures", ())
    }


def codes(code):
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from codes(inner)


def functions(module):
    owners = [module, *(its for its in vars(module).values() if isinstance(its, type))]
    for its in (its for owner in owners for its in vars(owner).values()):
        for function in (its, *(getattr(its, name, None) for name in ("__func__", "fget", "func"))):
            if isinstance(function, FunctionType) and function.__module__ == module.__name__:
                yield function


def called():  # the kernels that functions of Python name
    for module in found:
        for function in functions(import_module(module.name)):
            for code in codes(function.__code__):
                named = [function.__globals__.get(name) for name in code.co_names]
                within = [its for its in named if isinstance(its, ModuleType)]
                named += [getattr(its, name, None) for its in within for name in code.co_names]
                yield from (its for its in named if isinstance(its, Dispatcher))


compile_kernels()
before = loaded()
assert len(before) > 10, before
kernels = set(called())
assert len(kernels) > 90, kernels
never = [kernel.py_func for kernel in kernels if not kernel.signatures]
print(*sorted(f"{its.__module__}.{its.__name__} is not called" for its in never), sep=chr(10))
for n in (1, 2, 5, 9):
    for spread in (1, 400):
        rng = np.random.default_rng(n)
        every = np.triu(np.log(rng.uniform(0.01, 0.9, (n, n))), 1)
        chain = np.where(np.eye(n, k=1) > 0, every, 0.0)
        for some in (every, chain):
            for strategy, alpha in (("any", 0.0), ("any", 0.5), ("consuming", 0.0)):
                problem = CostedProblem(
                    tuple(f"v{i}" for i in range(n)), rng.uniform(0, 4, n) * spread, some + some.T,
                    strategy=strategy, cost=Throughput(alpha), last=n - 1 if alpha else None,
                )
                for name in PLAN_GENERATORS:
                    for budget in (None, Budget(steps=3)):
                        try:
                            plan_problem(problem, name, budget=budget)
                        except PlanningRefusedError:
                            pass
events = ten_symbols(2_000, 0)
stream = cep.EventStream.from_pandas(events, type="symbol", time="ts")
large = events[:900].assign(value=2**62, k=1)
aggregated = cep.EventStream.from_pandas(large, type="symbol", time="ts")
for text in (
    "SEQ(s3 a, NOT(s4 n), s6 b, s9 c) WHERE a.difference < b.difference",
    "AND(s3 a, s6 b, NOT(s2 n)) WHERE n.difference > a.difference",
    "SEQ(s3 a, KL(s4 b), s9 c) WHERE b[i].difference > b[i-1].difference",
    "OR(SEQ(s3 a, s4 b), SEQ(s5 c, AND(s6 d, s7 e)))",
    "SEQ(s3 a, s6 b) STRATEGY consuming",
    "SEQ(s8 a, s9 b) STRATEGY strict_contiguity",
):
    pattern = cep.parse(f"PATTERN {text} WITHIN 60000 units")
    statistics = cep.measure_statistics(pattern, stream)
    for name in ("DP-LD", "DP-B"):
        plan = cep.plan(pattern, statistics, name)
        for options in ({"output": "count"}, {}, {"latency": True}):
            cep.evaluate(pattern, stream, plan, **options)
        detector = cep.Detector(pattern, plan)
        detector.push(stream[:900])
        detector = cep.Detector.restore(detector.snapshot())
        detector.push(stream[900:])
        detector.flush()
for method in ("window-product", "a-seq", "two-step"):
    for what in ("COUNT, SUM(b.difference)", "AVG(b.value), MAX(b.value)"):
        for where in ("", "WHERE [k]"):
            text = f"PATTERN SEQ(s3 a, KL(s6 b), NOT(s2 n), s9 c) {where} AGG {what} WITHIN 900 units"
            for scope in ("window", "stream"):
                cep.aggregate(text, aggregated, method, scope=scope)
                cep.aggregate(text, aggregated, method, scope=scope, at=[99])
condition = "b[last].difference < c.difference"
what = "SUM(b.value), AVG(b.difference)"
text = f"PATTERN SEQ(s3 a, KL(s6 b), s9 c) WHERE {condition} AGG {what} WITHIN 900 units"
for scope in ("window", "stream"):
    cep.aggregate(text, aggregated, "greta", scope=scope)
    cep.aggregate(text, aggregated, "greta", scope=scope, at=[99])
# Copies, whose arrays may be written where those of a stream are not.
for method, what in (("order-statistics", "SUM(a.value), MAX(b.value)"), ("a-seq", "COUNT"), ("greta", "COUNT")):
    text = "PATTERN SEQ(s3 a, s6 b) WHERE a.difference < b.difference AGG "
    aggregator = cep.Aggregator(f"{text}{what} WITHIN 900 units", method=method)
    aggregator.push(aggregated[:300])
    deepcopy(aggregator).push(aggregated[300:])
    cep.Aggregator.restore(aggregator.snapshot()).push(aggregated[300:])
golden.PUSHED = 40  # fewer pushes, of the same kernels
for section, where, text in golden.cases():
    golden.measured(section, where, text)
print(*sorted(loaded() - before), sep=chr(10))
"""


def test_nothing_else_is_compiled_or_loaded_later() -> None:
    root = Path(__file__).resolve().parents[3]
    run = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=False, cwd=root
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == ""
