"""The names of evaluators, for planners, which know no more of them and import none."""

from __future__ import annotations

from collections.abc import Collection

from cepbench.arguments import folded, shown
from cepbench.errors import CepbenchError, did_you_mean

#: Those of cepbench; a user-defined one is registered where evaluators are imported.
BUILT_IN = (
    "lazy-nfa", "tree", "lazy-nfa-instances", "tree-instances", "zstream", "stack-nfa", "sase",
    "sase-basic", "sase-backtrack", "hierarchical-stacks",
)  # fmt: skip

_known: Collection[str] = BUILT_IN


def announce(registry: Collection[str]) -> None:
    """Take the names from now on from the registry of evaluators."""
    global _known
    _known = registry


def known_evaluator(given: object, error: type[CepbenchError]) -> str:
    """The name of an evaluator as it is registered, from one in any case.

    Raises CepbenchError, of the type ``error``, if there is none; the message suggests the nearest
    name.
    """
    names = {folded(name): name for name in _known}
    wanted = folded(given) if isinstance(given, str) else None
    if wanted not in names:
        raise error(
            f"no evaluator {shown(given)}; there are {', '.join(_known)}{did_you_mean(wanted, names)}"
        )
    return names[wanted]
