"""Profiles of hypothesis, which tests must share a worker, and a catalogue of data sets to change."""

from __future__ import annotations

import atexit
import gc
import os
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer.testing
from hypothesis import HealthCheck, Phase, settings

from cepbench.engines.adaptation.policies import ADAPTATION_POLICIES
from cepbench.engines.aggregation.registry import AGGREGATORS
from cepbench.engines.detection.registry import EVALUATORS
from cepbench.planning.costs.models import COST_MODELS
from cepbench.planning.planners.registry import PLAN_GENERATORS
from cepbench.planning.planners.sharing.registry import WORKLOAD_PLANNERS
from tests.budgets import DEEPER, INTERPRETED, SOAK, USUAL, covering

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.presentation.reporting.browser import Browser

# A kernel's first call compiles it, which no deadline should count.
_COMMON = {
    "deadline": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
# The same examples on every machine: a change fails by what it changes. `make soak` looks for more,
# by the profile `thorough` with random seeds.
settings.register_profile("usual", max_examples=USUAL, derandomize=True, **_COMMON)
# Shrinking takes minutes here; the same test compiled gives the small example.
settings.register_profile(
    "interpreted",
    max_examples=2,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    **_COMMON,
)
settings.register_profile(
    "thorough", max_examples=int(os.environ.get("CEPBENCH_EXAMPLES", "2000")), **_COMMON
)

settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "interpreted" if INTERPRETED else "usual")
)

# A short-lived Java starts faster so, also one that a notebook or a command starts.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# Plans do not depend on what was measured on this machine.
os.environ["CEPBENCH_UNIT_COSTS"] = os.devnull

# Each call of a command in a test would make all commands anew.
typer.testing._get_command = cache(typer.testing._get_command)

#: The tests of a built report are for `make report-check`, which says where it is.
collect_ignore = [] if "CEPBENCH_REPORT" in os.environ else ["report"]

#: Of a table of more cases every second one runs where kernels are not compiled.
MOST = 24

#: Folders whose tests run one after the other in one worker: they share a Spark session, or
#: start a JVM of their own.
_ONE_WORKER = {"spark": "spark", "notebooks": "notebooks"}


# First of all: pytest-xdist reads the marks in a hook of the same name.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    tests = Path(__file__).parent
    for item in items:
        folder = item.path.relative_to(tests).parts[0]
        if folder in _ONE_WORKER or "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group(_ONE_WORKER.get(folder, "spark")))
        if "seeds" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.seeded)
    if INTERPRETED:
        items[:] = _each_value_once(items)


@pytest.hookimpl(optionalhook=True)  # where pytest-xdist is
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Cases of a test are sent to a worker together: each that is sent has all before it looked at."""
    from xdist.scheduler import LoadGroupScheduling

    class OfTests(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return LoadGroupScheduling._split_scope(self, nodeid).partition("[")[0]

    return OfTests(config, log) if SOAK is None else None


def _each_value_once(items: Sequence[Any]) -> Iterator[Any]:
    """Of each test the cases that have every value of its parameters between them; of many half."""
    tables: dict[str, list[Any]] = {}
    for item in items:
        tables.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in tables.values():
        if len(cases) > 1:
            cases = covering(cases, lambda case: map(_shown, case.callspec.params.values()))
        yield from cases[:: 2 if len(cases) > MOST else 1]


def _shown(value: object) -> str:
    try:
        return repr(value)
    except ValueError:  # a number of too many digits
        return str(id(value))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is imported is no garbage: looking through it takes a third of collecting, a tenth of running."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)  # tests leave few circles behind
        # Extension modules report what is not collected at exit as leaks; pytest collects before it.
        atexit.register(gc.unfreeze)


@pytest.fixture(autouse=True)
def registered_as_before() -> Iterator[None]:
    """What a test registers, by itself or from a file, is gone when it has ended."""
    with (
        PLAN_GENERATORS.restored(),
        EVALUATORS.restored(),
        COST_MODELS.restored(),
        ADAPTATION_POLICIES.restored(),
        AGGREGATORS.restored(),
        WORKLOAD_PLANNERS.restored(),
    ):
        yield


@pytest.fixture
def seeds(request: pytest.FixtureRequest) -> Callable[[int], Sequence[int]]:
    """So many seeds of cases that a test draws: the first ones, or random ones in a soak."""

    def drawn(number: int) -> Sequence[int]:
        if SOAK is None:
            return range(-(-number // 10) if INTERPRETED else number)
        rng = random.Random(f"{SOAK} {request.node.nodeid}")
        found = [rng.randrange(2**31) for _ in range(DEEPER * number)]
        request.node.user_properties.append(("seeds", len(found)))
        return found

    return drawn


#: The catalogue of data sets in git.
CATALOGUE = Path(__file__).resolve().parents[1] / "datasets"


@pytest.fixture
def catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the committed catalogue that is found before any other, whatever somebody made."""
    copy = tmp_path / "catalogue"
    shutil.copytree(CATALOGUE, copy, ignore=shutil.ignore_patterns("data"))
    monkeypatch.setenv("CEPBENCH_DATASETS", str(copy))
    return copy


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from cepbench.spark.session import spark_session

    session = spark_session(
        "local[2]",
        memory="1g",
        settings={
            "spark.sql.shuffle.partitions": "2",
            # Nothing here is worth to be compiled.
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        },
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The browser of a run, without a network; tests of what is drawn are skipped where there is none."""
    from tests.presentation.reporting.browser import browser

    with browser() as opened:
        yield opened


@pytest.fixture
def one_task(spark: SparkSession) -> Iterator[None]:
    """A micro-batch of a stream has one task after its shuffle: fewer Python workers to start."""
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", before)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real sample files; tests that need it are skipped where none is named."""
    named = os.environ.get("CEPBENCH_REAL_DATA")
    if not named:
        pytest.skip("CEPBENCH_REAL_DATA names no folder of real data")
    return Path(named)
