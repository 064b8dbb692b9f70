"""Outside engines: what is registered is asked, what differs is named, a broken case file says where."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import cepbench as cep
from cepbench.errors import CannotSayError, CaseError, ExperimentError
from cepbench.experiments.conformance.cases import Case, alike, match_of, read_cases, written
from cepbench.experiments.conformance.drawn import as_text, differences
from cepbench.experiments.conformance.outside import OUTSIDE_ENGINES, OutsideEngine
from cepbench.presentation.reporting import conformance_page

CASES = Path(__file__).parents[3] / "conformance" / "cases"

GOOD = """[one]
rule = "3 order"
stream = "s.csv"
pattern = "PATTERN SEQ(A a, B b) WITHIN 4 units"
expected = ["0 1"]
"""


@pytest.fixture(autouse=True)
def registry() -> Iterator[None]:
    with OUTSIDE_ENGINES.restored():
        yield


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    theme = tmp_path / "theme"
    theme.mkdir()
    (theme / "s.csv").write_text("id,type,ts,x\n0,A,1,1\n1,B,2,\n", encoding="utf-8")
    (theme / "cases.toml").write_text(GOOD, encoding="utf-8")
    return tmp_path


def test_cepbench_and_duckdb_find_what_is_expected() -> None:
    report = cep.compare_engines(["cepbench", "DuckDB", "polars"], CASES)
    assert set(report.table["status"]) == {"equal", "cannot say"}
    assert report.counts.loc["cepbench", "equal"] == len(report.cases) >= 200
    assert report.counts.loc["DuckDB", "equal"] > 100
    assert report.counts.loc["Polars", "equal"] > 100


def test_what_an_engine_leaves_out_and_adds_is_named(folder: Path) -> None:
    @cep.outside_engine("adds")
    def adds(case: Case) -> list[tuple[int, ...]]:
        return [(0, 1), (0, 1)]

    @cep.outside_engine("moves")
    def moves(case: Case) -> list[tuple[int, ...]]:
        return [(1, 0)]

    @cep.outside_engine("leaves")
    def leaves(case: Case) -> list[tuple[int, ...]]:
        return []

    @cep.outside_engine("refuses")
    def refuses(case: Case) -> list[tuple[int, ...]]:
        raise CannotSayError("no order in it")

    @cep.outside_engine("fails")
    def fails(case: Case) -> list[tuple[int, ...]]:
        case.events.drop(case.events.index, inplace=True)  # which changes no other engine's
        raise KeyError("x")

    @cep.outside_engine("exits")
    def exits(case: Case) -> list[tuple[int, ...]]:
        sys.exit(len(case.stream))

    names = ["adds", "moves", "leaves", "refuses", "fails", "exits"]
    table = cep.compare_engines(names, folder).table.set_index("engine")
    assert list(table["status"])[:3] == ["more", "fewer and more", "fewer"]
    assert set(table["status"][3:]) == {"cannot say"}
    assert table.loc["adds", "beyond"] == ((0, 1),)
    assert table.loc["leaves", "lacking"] == ((0, 1),)
    assert list(table["reason"])[3:] == ["no order in it", "KeyError: 'x'", "SystemExit: 2"]
    assert "lacks (0 1)" in cep.compare_engines(["leaves"], folder).describe()


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        ('rule = "3 order"', "", "[one] rule: must be a text, and is missing"),
        ('"s.csv"', '"t.csv"', "[one] stream"),
        ("PATTERN SEQ", "PATTERN SEK", "[one] pattern"),
        ("[one]", "[one]\nrules = 3", "[one] rules: is no key; did you mean 'rule'"),
        ('["0 1"]', '["0 x"]', "[one] expected: '0 x' is no match"),
        ('["0 1"]', '["0 7"]', "[one] expected: '0 7' has an id that is not in the stream"),
        ('["0 1"]', '"0 1"', "[one] expected: must be a list of texts, and is"),
        ("[one]", "[one", "cases.toml"),
        ('rule = "3 order"', 'rule = "3 order"\ntexts.cobol = "x"', "[one] texts.cobol"),
    ],
)
def test_a_broken_file_names_case_and_key(
    folder: Path, before: str, after: str, named: str
) -> None:
    file = folder / "theme" / "cases.toml"
    file.write_text(GOOD.replace(before, after), encoding="utf-8")
    with pytest.raises(CaseError) as raised:
        read_cases(folder)
    assert str(file) in str(raised.value)
    assert named in str(raised.value)


@pytest.mark.parametrize(
    ("stream", "named"),
    [
        ("id,type,ts\n0,A,2\n1,B,1\n", "ts must be whole numbers that never decrease"),
        ("id,type,ts\n1,A,2\n2,B,3\n", "the column id must be 0, 1, 2"),
        ("id,kind,ts\n0,A,2\n", "has no column type"),
    ],
)
def test_a_broken_stream_is_named(folder: Path, stream: str, named: str) -> None:
    (folder / "theme" / "s.csv").write_text(stream, encoding="utf-8")
    with pytest.raises(CaseError, match=named):
        read_cases(folder)


def test_a_folder_without_cases_and_an_unknown_engine_are_errors(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="no file"):
        cep.compare_engines(["DuckDB"], tmp_path)
    with pytest.raises(ExperimentError, match=r"did you mean 'DuckDB'"):
        cep.compare_engines(["DukDB"], CASES)


@pytest.mark.parametrize("text", ["0 1", "0 1,3 -", "4 ,", ""])
def test_matches_are_read_as_written(text: str) -> None:
    assert written(match_of(text)) == text
    assert alike([match_of(text)]).total() == 1


def test_what_is_not_installed_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CEPBENCH_PEERS", str(tmp_path))
    names = ["chDB", "CORE", "Flink CEP", "Flink SQL"]
    report = cep.compare_engines(names, CASES / "ties")
    assert set(report.table["status"]) == {"not installed"}
    assert list(report.missing) == names
    assert all(reason.endswith("; make peers") for reason in report.missing.values())
    assert "chDB         not installed: there is no" in report.describe()


def test_a_module_that_an_adapter_lacks_is_named(folder: Path) -> None:
    @cep.outside_engine("lacks")
    def lacks(case: Case) -> list[tuple[int, ...]]:
        import no_such_engine  # type: ignore[import-not-found]

        return list(no_such_engine.matches(case))

    (reason,) = cep.compare_engines(["lacks"], folder).missing.values()
    assert reason.startswith("not installed: No module named")
    assert reason.endswith("; pip install no_such_engine")


def _without_ties(case: Case) -> list[tuple[int, ...]]:
    """The fault that shrinking has to find: no match of a stream with equal timestamps."""
    found = cep.evaluate(case.pattern, case.stream).matches
    return [] if case.events["ts"].duplicated().any() else list(found.itertuples(index=False))


def test_a_difference_is_shrunk_to_what_it_turns_on() -> None:
    engine = OutsideEngine("no ties", _without_ties)
    smallest = differences(engine, 20, 0, most=2)
    assert smallest
    for case in smallest:
        assert len(case.events) <= 3
        assert case.events["ts"].duplicated().sum() == 1
        assert "WHERE" not in case.text
        assert "no ties" in as_text(engine, case)
    assert differences(OUTSIDE_ENGINES["DuckDB"], 20, 0) == []


def test_the_page_has_every_case_and_draws_a_difference(tmp_path: Path) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        'import cepbench as cep\n\n\n@cep.outside_engine("none")\ndef none(case):\n    return []\n',
        encoding="utf-8",
    )
    arguments = ["--cases", str(CASES / "kleene"), "--plugin", str(plugin)]
    arguments += ["--engines", "cepbench", "none", "--out", str(tmp_path / "site")]
    assert conformance_page.main(arguments) == 0
    page = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    for case in read_cases(CASES / "kleene"):
        assert f'id="{case.name.replace("/", "-")}"' in page
    assert page.count("<svg") == page.count("leaves out") > 20


def test_bad_input_of_the_command_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance_page.main(["--engines", "nobody"]) == 2
    assert "no outside engine 'nobody'" in capsys.readouterr().err
