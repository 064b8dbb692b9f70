"""The registry of aggregation methods, built-in and user-defined."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from cepbench.arguments import flag
from cepbench.engines.aggregation.a_seq import A_SEQ
from cepbench.engines.aggregation.dpc import DPC
from cepbench.engines.aggregation.greta import GRETA
from cepbench.engines.aggregation.order_statistics import ORDER_STATISTICS
from cepbench.engines.aggregation.protocol import AggregationMethod
from cepbench.engines.aggregation.two_step import TWO_STEP
from cepbench.engines.aggregation.user_defined import UserRun
from cepbench.engines.aggregation.window_product import WINDOW_PRODUCT
from cepbench.errors import EvaluationError
from cepbench.registry import Registry

_C = TypeVar("_C", bound=type[Any])

#: The methods; the default is the first one that runs a pattern.
AGGREGATORS = Registry(
    AggregationMethod,
    "aggregation method",
    EvaluationError,
    (DPC, WINDOW_PRODUCT, ORDER_STATISTICS, A_SEQ, GRETA, TWO_STEP),
    example='@aggregator("my-count")',
    wanted="an aggregation method is a class with a method push, not {}; "
    "see cepbench.engines.aggregation.protocol.AggregationRun",
    fits=lambda made: isinstance(made, type) and hasattr(made, "push"),
)


def aggregator(name: str, *, concepts: bool = False, source: str = "") -> Callable[[_C], _C]:
    """Register the decorated class as an aggregation method, and return it unchanged.

    The class takes an :class:`~cepbench.engines.aggregation.protocol.AggregationTask`, and raises
    :class:`~cepbench.errors.UnsupportedPatternError` for what it cannot run. Its objects have
    ``push(batch)``, which returns a list of rows ``(position, time, key, values)``, see
    :class:`~cepbench.engines.aggregation.protocol.Row`. The other methods of
    :class:`~cepbench.engines.aggregation.protocol.AggregationRun` may be missing: ``value`` is
    needed for ``at=``, ``snapshot`` and ``restore`` for snapshots, ``metrics`` for metrics other
    than time.

    :func:`cepbench.check_aggregator` compares it with ``two-step``. It is never the default.
    Registering a name again, compared without regard to case, ``-`` and ``_``, replaces a
    user-defined method; built-in ones cannot be replaced.

    Raises EvaluationError if the name is empty or a built-in method's, or the decorated object is
    no such class.

    Parameters
    ----------
    concepts : bool
        Whether it takes patterns with items of a concept, whose events are of the types below it, and
        with ``GROUP BY type(a)``; others are refused to it.
    source : str
        Its source in the literature.

    Examples
    --------
    >>> import cepbench as cep
    >>> @cep.aggregator("my-count")
    ... class MyCount:
    ...     def __init__(self, task):
    ...         self._inner = cep.Aggregator(task.pattern, emit=task.emit, scope=task.scope)
    ...
    ...     def push(self, batch):
    ...         return self._inner.take(batch)
    """
    AGGREGATORS.check_name(name)
    concepts = flag(concepts, f"{name}: concepts", EvaluationError)
    return AGGREGATORS.decorator(
        name,
        lambda made: AggregationMethod(
            name,
            partial(UserRun, name, made),
            concepts=concepts,
            source=source,
            implementation=made,
        ),
    )
