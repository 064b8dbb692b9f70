"""The entries that the contract is about: all of the registries, and engines of users."""

from __future__ import annotations

from pathlib import Path

import cepbench as cep
from cepbench.experiments.plugins import load_plugins
from tests.engines.detection.dummy_engine import DECLARED, EveryCombination

#: The engine that the documentation shows.
DOCUMENTED = Path(__file__).parents[2] / "docs/nested_loops.py"

#: Engines that the tests register as a user does: as few declarations as there can be, and that one.
USERS = ("every-combination", "nested-loops")


def register_users() -> None:
    """Register the engines of users."""
    cep.plan_evaluator("every-combination", **DECLARED)(EveryCombination)
    load_plugins([DOCUMENTED])


#: Names of evaluators.
EVALUATORS = (*cep.EVALUATORS, *USERS)

#: Names of all evaluators and methods of aggregation; the state of each can be saved.
LIVE = (*EVALUATORS, *cep.AGGREGATORS)
