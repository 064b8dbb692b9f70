"""``%%cep`` in an IPython shell: what it gives, where it goes, and how its errors look."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import cepbench as cep
from cepbench.presentation.app.magic import USAGE
from cepbench.presentation.figures.offline import VEGALITE_MIME
from tests.drawn_events import drawn_stream, normal

CELL = "PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 5 units"
VALUES = CELL.replace("WITHIN", "AGG COUNT, AVG(b.x) WITHIN")


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InteractiveShell]:
    folder = str(tmp_path_factory.mktemp("ipython"))
    found = InteractiveShell.instance(ipython_dir=folder)
    found.history_manager.enabled = False
    found.run_line_magic("load_ext", "cepbench")
    found.user_ns["events"] = drawn_stream(80, "AB", x=normal)
    yield found
    found.history_manager.end_session()
    InteractiveShell.clear_instance()


def run(shell: InteractiveShell, source: str) -> Any:
    done = shell.run_cell(source, store_history=False)
    done.raise_error()
    return done.result


def test_a_table_is_data_as_it_is(shell) -> None:
    frame = shell.user_ns["frame"] = pd.DataFrame(
        {"kind": [*"ABAB"], "at": range(4), "x": [1, 2, 3, 4]}
    )
    for name in ("frame", "arrow"):
        shell.user_ns["arrow"] = pa.Table.from_pandas(frame)
        found = run(shell, f"%%cep --data {name} --columns kind,at\n{CELL}")
        assert found.matches.to_numpy().tolist() == [[0, 1], [0, 3], [2, 3]]
        # The stream is remembered.
        assert run(shell, f"%%cep --count\n{CELL}").metrics.matches == 3
    with pytest.raises(UsageError, match="no column 'symbol'; there are kind, at, x"):
        run(shell, f"%%cep --data frame\n{CELL}")


def test_a_cell_finds_what_the_plain_calls_find(shell, capsys) -> None:
    stream, pattern = shell.user_ns["events"], cep.parse(CELL)
    statistics = cep.measure_statistics(pattern, stream)
    expected = cep.evaluate(pattern, stream, cep.plan(pattern, statistics)).matches
    found = run(shell, f"%%cep --data events --into own\n{CELL}")
    pd.testing.assert_frame_equal(found.matches, expected)
    assert shell.user_ns["own"] is found and len(expected) > 3
    # The data is remembered, and a number of the notebook is a parameter.
    shell.user_ns.update(low=0.5, zero=np.int64(0), high=1)
    more = "b.x AND a.x > :low + :zero /* not :high */ W"
    counted = run(shell, f"%%cep --count --generator GREEDY\n{CELL.replace('b.x W', more)}")
    a = stream.attributes["x"][expected["a"]]
    assert counted.metrics.matches == (a > 0.5).sum() and counted.found is None
    assert counted.evaluator == "lazy-nfa"
    assert run(shell, f"%%cep --plan --generator DP-LD\n{CELL}") == cep.plan(
        pattern, statistics, "DP-LD"
    )
    explained = run(shell, f"%%cep --explain --evaluator tree --generator DP-LD\n{CELL}")
    assert explained.metrics.matches == len(expected) and explained.evaluator == "tree"
    assert run(shell, f"%%cep --pattern\n{CELL}") == pattern


def test_a_cell_that_says_what_to_return(shell) -> None:
    found = run(shell, f"%%cep --data events\n{CELL}\nRETURN b, b.x - a.x AS rise")
    assert list(found.matches.columns) == ["b", "rise"]
    assert (found.matches["rise"] > 0).all() and len(found.matches) > 3
    found = run(
        shell,
        "%%cep --data ten-symbols/sample\n"
        "PATTERN SEQ(s0 a, s1 b) WITHIN 1 seconds RETURN a, a.difference AS p",
    )
    whole = cep.open_dataset("ten-symbols/sample").stream()
    assert (
        found.matches["p"].tolist() == whole.attributes["difference"][found.matches["a"]].tolist()
    )
    assert (whole.type_codes[found.matches["a"]] == whole.type_names.index("s0")).all()


def test_a_data_set_by_its_name(shell) -> None:
    found = run(
        shell, "%%cep --data ten-symbols/sample --count\nPATTERN SEQ(s0 a, s1 b) WITHIN 10 seconds"
    )
    dataset = cep.open_dataset("ten-symbols/sample")
    assert found.metrics.events == dataset.counts[["s0", "s1"]].sum()


def test_positions_are_those_in_the_data_set_that_was_named(shell) -> None:
    cell = "PATTERN SEQ(s0 a, s1 b) WITHIN 10 seconds"
    found = run(shell, f"%%cep --data ten-symbols/sample\n{cell}").matches
    whole, pattern = cep.open_dataset("ten-symbols/sample").stream(), cep.parse(cell)
    expected = cep.evaluate(pattern, whole, cep.OrderPlan(["a", "b"])).matches
    pd.testing.assert_frame_equal(found, expected)
    assert found["b"].max() > 1_000


def test_neighbours_are_those_among_all_events(shell) -> None:
    text = "PATTERN SEQ(CSCO a, MSFT b) STRATEGY strict_contiguity WITHIN 20 minutes"
    found = run(shell, f"%%cep --data nasdaq-style/sample --count\n{text}").metrics.matches
    pattern, dataset = cep.parse(text), cep.open_dataset("nasdaq-style/sample")
    counts = [
        cep.evaluate(
            pattern, stream, cep.plan(pattern, cep.measure_statistics(pattern, stream)),
            output="count",
        ).metrics.matches
        for stream in (dataset.stream(), dataset.stream(pattern))
    ]  # fmt: skip
    assert found == counts[0] > 0
    assert counts[1] > counts[0]  # without the other types, strangers are neighbours


def test_values_of_aggregates_and_their_chart(shell) -> None:
    with capture_output() as shown:
        found = run(shell, f"%%cep --data events --method two-step --scope trigger\n{VALUES}")
    expected = cep.aggregate(VALUES, shell.user_ns["events"], "two-step", scope="trigger")
    pd.testing.assert_frame_equal(found.values, expected.values)
    assert len(found.values) > 3 and found.method == "two-step"
    (chart,) = shown.outputs
    assert len(chart.data[VEGALITE_MIME]["vconcat"]) == 2
    assert run(shell, f"%%cep --pattern\n{VALUES}") == cep.parse(VALUES)
    nothing = VALUES.replace("a.x < b.x", "b.x > 99")
    with capture_output() as shown:
        assert run(shell, f"%%cep --data events\n{nothing}").values.empty
    assert not shown.outputs


@pytest.mark.parametrize("emit", ["trigger", "change"])
def test_values_of_a_data_set_are_at_its_positions(shell, emit: str) -> None:
    text = "PATTERN SEQ(s0 a, s1 b) AGG COUNT WITHIN 10 seconds"
    with capture_output():
        found = run(shell, f"%%cep --data ten-symbols/sample --emit {emit}\n{text}").values
    whole = cep.open_dataset("ten-symbols/sample").stream()
    pd.testing.assert_frame_equal(found, cep.aggregate(text, whole, emit=emit).values)


@pytest.mark.parametrize(
    ("line", "cell", "message"),
    [
        ("--data events", CELL.replace("b.x", "q.x"), "line 1, column"),
        ("--data evnts", CELL, "no such variable; did you mean 'events'?"),
        ("--data nowhere/quick", CELL, "nowhere"),
        ("--data CELL", CELL, "that variable is str"),
        ("--data events --genrator X", CELL, "unrecognized arguments: --genrator X"),
        ("--data events --generator GREDY", CELL, "did you mean 'GREEDY'?"),
        ("--data events --option rows", CELL, "--option rows: write NAME=VALUE"),
        ("--data events --option rows=3", CELL, "rows"),
        ("--data events --count --plan", CELL, "not allowed with"),
        ("--data events --into 1a", CELL, "--into '1a' is not a name"),
        ("--data events --into class", CELL, "--into 'class' is not a name"),
        ("--data 'events", CELL, "No closing quotation"),
        ("--data events --scope stream", CELL, "--scope is for patterns with AGG"),
        ("--data events --plan", VALUES, "--plan is for patterns without AGG"),
        ("--data events --generator GREEDY", VALUES, "--generator is for patterns without"),
        ("--data events --method a-sec", VALUES, "did you mean 'a-seq'?"),
    ],
)
def test_a_mistake_is_one_message(shell, capsys, line: str, cell: str, message: str) -> None:
    shell.user_ns["CELL"] = CELL
    done = shell.run_cell(f"%%cep {line}\n{cell}", store_history=False)
    assert not done.success
    printed = "".join(capsys.readouterr())
    assert message in printed and printed.startswith("UsageError") and "Traceback" not in printed


def test_without_data_it_says_what_to_give(shell, capsys) -> None:
    shell.user_ns.pop("_cep_data", None)
    shell.run_cell(f"%%cep\n{CELL}", store_history=False)
    assert "give --data the name of a variable" in capsys.readouterr().err
    shell.run_cell("%cep --count", store_history=False)
    assert "cell magic `%%cep` exists" in capsys.readouterr().err


def test_its_help_says_what_it_takes(shell) -> None:
    assert shell.magics_manager.magics["cell"]["cep"].__doc__ == USAGE
    for option in (
        "data",
        "generator",
        "evaluator",
        "option",
        "into",
        "count",
        "explain",
        "plan",
        "pattern",
        "seed",
        "method",
        "emit",
        "scope",
    ):
        assert f"--{option} " in USAGE


QUERIES = """\
q1 = PATTERN SEQ(T a, B b) WITHIN 5 units
q2 = PATTERN SEQ(A a, B b)
     WHERE a.x < b.x AND a.x > :low WITHIN 5 units"""


def test_a_cell_of_several_queries(shell) -> None:
    names = shell.user_ns
    names["low"], names["concepts"] = 0.1, cep.ConceptHierarchy({"T": ["A", "B"]})
    workload = cep.Workload.parse(QUERIES, {"low": 0.1}, hierarchy=names["concepts"])
    stream = names["events"].with_hierarchy(names["concepts"])
    expected = cep.evaluate(workload, stream)
    options = "--data events --hierarchy concepts"
    found = run(shell, f"%%cep {options} --into all\n{QUERIES}")
    assert names["all"] is found and list(found) == ["q1", "q2"]
    for query, its in expected.items():
        assert len(its.matches) > 3
        same = found[query].matches.sort_values(["a", "b"], ignore_index=True)
        pd.testing.assert_frame_equal(same, its.matches.sort_values(["a", "b"], ignore_index=True))
    assert run(shell, f"%%cep {options} --pattern\n{QUERIES}") == workload
    planned = run(shell, f"%%cep {options} --plan --planner top-down\n{QUERIES}")
    assert planned.planner == "TOP-DOWN" and planned.sources == {"q1": None, "q2": "q1"}
    counted = run(shell, f"%%cep {options} --count --evaluator hierarchical-stacks\n{QUERIES}")
    assert counted.metrics.matches == expected.metrics.matches
    explained = run(shell, f"%%cep {options} --explain --planner TOP-DOWN\n{QUERIES}")
    assert list(explained.steps["source"]) == [None, "q1"]
    app = run(shell, f"%%cep {options} --explore\n{QUERIES}")
    assert set(app.buttons) == {"q1", "q2"}
    # The hierarchy is that of the data, if it has one.
    names["under"] = stream
    again = run(shell, f"%%cep --data under --count\n{QUERIES}")
    assert again.metrics.matches == expected.metrics.matches
    single = run(shell, f"%%cep {options} --count\nPATTERN SEQ(T a, B b) WITHIN 5 units")
    assert single.metrics.matches == len(expected["q1"].matches)
    printed = "q1: SEQ(A, ¬ T, B)\nq2: SEQ(A, B)"
    found = run(shell, f"%%cep {options} --dialect e-cube --within '5 units'\n{printed}")
    assert list(found) == ["q1", "q2"]
    values = QUERIES.replace("WITHIN", "AGG COUNT WITHIN")
    found = run(shell, f"%%cep {options}\n{values}")
    assert found.values["COUNT"].max() > 1


def test_errors_about_several_queries(shell, capsys) -> None:
    shell.user_ns.update(low=0.1, concepts=cep.ConceptHierarchy({"T": ["A", "B"]}))
    for line, cell, words in (
        ("--hierarchy concepts --planner CHAS", QUERIES, "did you mean 'CHASE'"),
        ("--planner CHASE", CELL, "--planner is for several queries"),
        ("--explore", CELL, "--explore is for several queries"),
        ("--method a-seq", QUERIES, "--method is for one pattern with AGG"),
        ("--hierarchy concept", QUERIES, "no such variable with a cep.ConceptHierarchy; did you mean 'concepts'"),
        ("", QUERIES, "no event of type 'T'"),
        ("", QUERIES.replace("q2", "q1"), "two queries are named 'q1'"),
        ("--hierarchy concepts", QUERIES.replace("B b", "Z b"), "query 'q1': no event of type 'Z'"),
        ("--dialect sase", CELL, "dialect is one of"),
    ):  # fmt: skip
        done = shell.run_cell(f"%%cep --data events {line}\n{cell}", store_history=False)
        assert done.error_in_exec is not None and words in str(done.error_in_exec), line
        assert "Traceback" not in capsys.readouterr().err


def test_a_cell_of_sql(shell, capsys) -> None:
    names = shell.user_ns
    names["ticks"] = pd.DataFrame({"kind": "T", "at": range(4), "x": [1.0, 3.0, 2.0, 5.0]})
    options = "--data ticks --columns kind,at --dialect match_recognize"
    query = """SELECT * FROM t MATCH_RECOGNIZE (ORDER BY at MEASURES B.x AS top
    AFTER MATCH SKIP TO NEXT ROW PATTERN (A B) WITHIN 5 DEFINE B AS B.x > PREV(B.x))"""
    assert run(shell, f"%%cep {options}\n{query}").matches["top"].tolist() == [3.0, 5.0]
    assert run(shell, f"%%cep {options} --count\n{query}").matches == 2
    assert run(shell, f"%%cep {options} --pattern\n{query}").within is not None
    found = run(shell, f"%%cep {options} --evaluator tree\n{query}")
    assert found.matches["top"].tolist() == [3.0, 5.0]
    by_rows = run(
        shell, f"%%cep {options} --explain\n{query.replace('B.x AS top', 'COUNT(*) AS n')}"
    )
    assert "COUNT(*)" in by_rows.reason
    assert "No plan is chosen" in by_rows._repr_html_()
    assert "partition" not in run(shell, f"%%cep {options} --explain\n{query}").describe()
    for line, cell, words in (
        ("--method a-seq", query, "--method is for patterns"),
        ("--plan", query.replace("SKIP TO NEXT ROW", "SKIP PAST LAST ROW"), "^^^^"),
        ("", query.replace("A B", "A & B"), "PATTERN has variables"),
    ):
        done = shell.run_cell(f"%%cep {options} {line}\n{cell}", store_history=False)
        assert words in str(done.error_in_exec), line
        assert "Traceback" not in capsys.readouterr().err


def test_rules_of_other_systems(shell) -> None:
    shell.user_ns["logs"] = pd.DataFrame(
        {"kind": [*"LLF"], "at": pd.date_range("2026-01-05", periods=3, freq="s"), "user": [*"aba"]}
    )
    options = "--data logs --columns kind,at"
    sequence = "sequence by user with maxspan=1m [L where true] [F where true]"
    rule = "correlation:\n  type: temporal_ordered\n  rules: [L, F]\n  group-by: [user]\n  timespan: 1m"
    for dialect, cell in (("eql", sequence), ("sigma", rule)):
        found = run(shell, f"%%cep {options} --dialect {dialect}\n{cell}")
        assert found.matches.to_numpy().tolist() == [[0, 2]]
        assert (
            "matches"
            in run(shell, f"%%cep {options} --dialect {dialect} --explain\n{cell}").describe()
        )
