"""The entries that the contract is about: all of the registries, and engines of users."""

from __future__ import annotations

import cepbench as cep
from tests.engines.detection.dummy_engine import DECLARED, EveryCombination

#: The engine that the tests register as a user does.
USERS = ("every-combination",)


def register_users() -> None:
    """Register the engines of users."""
    cep.plan_evaluator("every-combination", **DECLARED)(EveryCombination)


#: Names of evaluators.
EVALUATORS = (*cep.EVALUATORS, *USERS)

#: Names of all evaluators and methods of aggregation whose state can be saved.
LIVE = (*(its.name for its in cep.EVALUATORS.values() if its.snapshots), *USERS, *cep.AGGREGATORS)
