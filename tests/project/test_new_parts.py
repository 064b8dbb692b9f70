"""An engine and a cost model of the package take one new file each and a line in a registry."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

import cepbench
from cepbench.engines.runs import protocol

PACKAGE = Path(cepbench.__file__).parent

#: The engine that the protocol's docstring shows.
ENGINE = """
import numpy as np

from cepbench.engines.runs.protocol import Evaluator
from cepbench.engines.runs.result import Metrics


""" + dedent(
    (protocol.__doc__ or "").partition("A complete example::")[2].partition("\nThe front end")[0]
)
COST = '''
"""The larger a join's right side, the more it costs."""

import numpy as np

from cepbench.planning.costs.model import CostModel


class RightHeavy(CostModel):
    name = "right-heavy"
    form = "joins"

    def log_leaves(self, problem, kind):
        return np.zeros(problem.n)

    def log_joins(self, problem, kind, left, right):
        return np.log(3.0) * right.sum(axis=1)
'''
#: Registry -> the new file beside it, its text, and the two places that name it.
PARTS = {
    "engines/detection/registry.py": (
        "counting.py",
        ENGINE,
        "from cepbench.engines.joins.lazy_nfa import",
        "from cepbench.engines.detection.counting import COUNTING\n",
        ("        SASE_BACKTRACK,\n", "        SASE_BACKTRACK,\n        COUNTING,\n"),
    ),
    "planning/costs/models.py": (
        "right_heavy.py",
        COST,
        "from cepbench.planning.costs.problem import",
        "from cepbench.planning.costs.right_heavy import RightHeavy\n",
        ("        ZStreamRepaired(),\n", "        ZStreamRepaired(),\n        RightHeavy(),\n"),
    ),
}  # fmt: skip
SCRIPT = """
import json
import cepbench as cep
dataset = cep.open_dataset("nasdaq-style/sample")
stream = dataset.stream()[:5000]
pattern = cep.parse("PATTERN SEQ(MSFT a, GOOG b, INTC c, AMZN d) WITHIN 1 minutes")
statistics = cep.measure_statistics(pattern, stream)
result = cep.evaluate(pattern, stream, evaluator="Counting", output="count")
live = cep.Detector(pattern, evaluator="counting", output="count")
try:
    cep.evaluate(pattern, stream, evaluator="counting")
except cep.CepbenchError as error:
    refusal = str(error)
plans = {
    name: cep.plan(pattern, statistics, name, cost="right_heavy").tree
    for name in ("DP-B", "ZSTREAM")
}
print(json.dumps({
    "events": int((stream.to_pandas()["type"] == "MSFT").sum()),
    "counted": result.metrics.details["counted"],
    "pushed": live.push(stream[:3000]) + live.push(stream[3000:]) + live.flush(),
    "refusal": refusal,
    "plans": plans,
    "default": cep.plan(pattern, statistics, "DP-B").tree,
    "compared": list(cep.compare(
        pattern, stream, statistics=statistics, generators=["DP-B"], cost="right-heavy", repetitions=1,
        seconds=0,
    )["status"]),
}))
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this project with two more parts."""
    root = tmp_path_factory.mktemp("project")
    shutil.copytree(PACKAGE, root / "cepbench", ignore=shutil.ignore_patterns("__pycache__"))
    for registry, (file, text, before, line, (old, new)) in PARTS.items():
        path = root / "cepbench" / registry
        path.with_name(file).write_text(text, encoding="utf-8")
        code = path.read_text(encoding="utf-8")
        assert code.count(before) == code.count(old) == 1
        code = code.replace(before, line + before).replace(old, new)
        path.write_text(code, encoding="utf-8")
    (root / "datasets").symlink_to(PACKAGE.parent / "datasets")
    return root


def test_an_engine_and_a_cost_are_a_file_and_a_line_each(project: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        env={**os.environ, "PYTHONPATH": str(project)}, cwd=project, capture_output=True,
        encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["events"] == found["counted"] == found["pushed"] > 0
    assert "counting" in found["refusal"] and "lazy-nfa" in found["refusal"]
    # Left-deep trees are the only ones whose right sides are all single variables; the default cost
    # gives the right-deep one here.
    for tree in found["plans"].values():
        while isinstance(tree, list):
            tree, right = tree
            assert isinstance(right, str)
    assert found["default"] != found["plans"]["DP-B"]
    assert found["compared"] == ["ok"]
