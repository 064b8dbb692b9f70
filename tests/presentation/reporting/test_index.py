"""The front page says what was claimed and measured, when, where and with what; text stays text."""

from __future__ import annotations

import platform
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pandas as pd
from PIL import Image

from cepbench.experiments.studies.kolchinsky2018 import STUDY
from cepbench.experiments.sweeps.cells import provenance
from cepbench.presentation.reporting.claims import claims
from cepbench.presentation.reporting.downloads import Thumbnail, write_thumbnail
from cepbench.presentation.reporting.index import Judged, Report, StudyReport, index_html
from cepbench.presentation.reporting.navigation import Entry, Navigation
from cepbench.presentation.reporting.pages import Page
from cepbench.presentation.reporting.provenance import benchmarks_in, of_this_run
from cepbench.presentation.reporting.states import FAILS, HOLDS, OPEN, PARTLY
from cepbench.presentation.reporting.story import (
    headlines,
    judged_claims,
    regime_lines,
    sentence_of,
)
from cepbench.presentation.reporting.verdicts import by_claim, counts_of, ledger
from tests.presentation.reporting.offline import read_page

EVIL = "<script>alert(1)</script>"
NAVIGATION = Navigation.of([])


def page(title: str = "Figures") -> Page:
    started = datetime(2020, 2, 29, 23, 59, tzinfo=timezone(timedelta(hours=-5)))
    return Page(
        "figures",
        title=title,
        summary=f"About {title}",
        group="kolchinsky2018",
        seconds=125.4,
        started=started,
        parameters={"profile": "quick", "seed": 17, "pattern": title},
        machine={"processor": "X", "cores": "2"},
        versions={"cepbench": "9.9", "numpy": "8.8"},
    )


def text_of(report: Report) -> str:
    return " ".join(read_page(index_html(report, NAVIGATION)).text.split())


def test_it_says_what_when_and_with_what() -> None:
    html = index_html(Report([page()]), NAVIGATION)
    parsed = read_page(html)
    text = " ".join(parsed.text.split())
    for expected in (
        "Figures", "About Figures", "2020-03-01 04:59 UTC; the notebooks took 2 min 5 s",
        "cepbench 9.9, numpy 8.8",
    ):  # fmt: skip
        assert expected in text, expected
    for name, value in {"profile": "quick", "seed": "17", "processor": "X"}.items():
        assert f"<dt>{name}</dt><dd>{value}</dd>" in html
    links = [attributes["href"] for tag, attributes in parsed.elements if tag == "a"]
    assert "figures.html" in links and not [tag for tag, _ in parsed.elements if tag == "img"]


def test_a_card_has_a_figure_that_fits_and_what_was_found(tmp_path: Path) -> None:
    sizes = {"high": (300, 900), "wide": (900, 200), "fits 1": (1440, 600)}
    (tmp_path / "p").mkdir()
    for name, size in sizes.items():
        Image.new("RGB", size).save(tmp_path / "p" / f"{name}.png")
    picture = write_thumbnail(tmp_path, [("p", name) for name in sizes])
    assert picture == Thumbnail("fits 1", "p/thumbnails/fits 1.png", 720, 300)
    with Image.open(tmp_path / picture.link) as small:
        assert small.size == (720, 300)
    high = write_thumbnail(tmp_path, [("p", "high")])
    assert high == Thumbnail("high", "p/thumbnails/high.png", 300, 900)
    assert write_thumbnail(tmp_path, []) is None
    one = replace(page(), found="Found <it>.")
    card = StudyReport(STUDY, [one], picture)
    parsed = read_page(index_html(Report([one], studies=[card]), NAVIGATION))
    assert [a["src"] for tag, a in parsed.elements if tag == "img"] == ["p/thumbnails/fits%201.png"]
    assert "Found <it>." in parsed.text


def test_pages_of_several_runs_are_not_taken_for_one() -> None:
    later = replace(page(), parameters={"profile": "full"}, versions={"numpy": "8.9"})
    report = Report([page(), later])
    assert report.versions == {} and report.machine == {"processor": "X", "cores": "2"}
    text = text_of(report)
    assert "profilequick, full seed17 run" in text and "numpy" not in text


def test_it_loads_files_beside_it_only_and_forbids_others() -> None:
    parsed = read_page(index_html(Report([page()]), NAVIGATION))
    assert parsed.loads == []
    assert [attributes["src"] for attributes, _ in parsed.scripts] == ["assets/site.js"]
    policies = [a["content"] for tag, a in parsed.elements if "http-equiv" in a]
    assert len(policies) == 1 and policies[0].startswith("default-src 'none'")


def test_names_are_text_and_never_markup() -> None:
    parsed = read_page(index_html(Report([page(EVIL)]), Navigation.of([Entry(EVIL, "x", "more")])))
    assert [text for _, text in parsed.scripts] == [""]
    # Title, summary and parameter in the table of runs, and the navigation.
    assert parsed.text.count(EVIL) == 4


def test_a_report_of_nothing_but_a_page_is_whole() -> None:
    text = text_of(Report([Page("t", "T")]))
    assert "Which plan" in text and "profileunknown" in text.replace(" ", "")
    for missing in ("at a glance", "Beyond", "claimed", "Benchmarks", "run from", "whole exp"):
        assert missing not in text


def test_studies_stand_side_by_side_and_those_that_were_not_run_are_named() -> None:
    other = replace(STUDY, key="mei2009", notebooks=("figure_8",))
    studies = [StudyReport(STUDY, [page()]), StudyReport(other)]
    text = text_of(Report([page()], studies=studies))
    assert 'not run: make report STUDIES="mei2009"' in text and "took 2 min 5 s" in text
    assert text.count("Mei & Madden 2009") == 1  # and no section of its own


def test_the_machine_has_no_name_and_versions_are_all_known() -> None:
    machine, versions, commit = of_this_run().values()
    assert set(machine) == {"processor", "cores"}
    assert platform.node() == "" or platform.node() not in "".join(machine.values())
    assert {"cepbench", "numpy", "pyspark", "python"} <= set(versions)
    assert all(version[0].isdigit() for version in versions.values())
    assert commit == (provenance()["commit"] or "")


def judged(**changes: dict[str, Any]) -> pd.DataFrame:
    """The ledger without any results, the last tests of some claims as given."""
    table = ledger("kolchinsky2018", {}).reset_index(drop=True)
    for name, row in changes.items():
        own = table.index[table["id"] == name.replace("_", "-")]
        for column, value in row.items():
            table.loc[own[-1], column] = value
        table.loc[own, "overall"] = row["verdict"]
    return table


def test_the_story_is_told_by_the_ledger_s_numbers() -> None:
    fast = {"value": 1.5, "low": 1.25, "high": 1.75, "verdict": HOLDS}
    memory = {"value": 0.741, "low": -0.5, "high": 0.8, "verdict": FAILS}
    table = judged(join_orders_faster=fast, join_orders_memory=memory)
    found = headlines(table)
    statements = {claim.id: claim.statement for claim in claims(STUDY)}
    assert [line.statement for line in found] == [
        statements["join-orders-faster"], statements["join-orders-memory"],
    ]  # fmt: skip
    ((first,), (second,)) = found[0].cells, found[1].cells
    assert first.measured.startswith("1.50 times") and first.interval == "1.25 to 1.75"
    assert second.measured.startswith("74 %") and second.interval == "−50 % to 80 %"
    assert [line.verdict for line in found] == [HOLDS, FAILS]
    text = text_of(
        Report([], studies=[StudyReport(STUDY, [page()], judged=Judged(headlines=found))])
    )
    assert "1.50 times the throughput of TRIVIAL and EFREQ 95 %: 1.25 to 1.75" in text
    here = "Here: 1.50 times the throughput of TRIVIAL and EFREQ, 95 %: 1.25 to 1.75: holds."
    assert f"{statements['join-orders-faster']} {here}" in text


def test_the_sentence_of_a_page_is_of_a_claim_that_was_decided() -> None:
    decided = judged_claims(
        judged(join_trees_faster={"value": 0.7, "low": 0.6, "high": 0.8, "verdict": FAILS})
    )["figures_3_4_5"]
    found = sentence_of(decided)
    assert found.endswith("Here: 0.70 (throughput), 95 %: 0.60 to 0.80: does not hold.")
    assert found.startswith(next(c.statement for c in claims(STUDY) if c.id == "join-trees-faster"))
    assert sentence_of(decided[:1]).endswith("not testable.") and sentence_of([]) == ""


def test_every_claim_of_the_ledger_has_its_mark() -> None:
    table = judged(
        trivial_wins_contiguity={"verdict": HOLDS, "value": 2.0, "low": 2.0, "high": 2.0}
    )
    found = judged_claims(table)
    assert set(found) == {claim.results for claim in claims(STUDY)}
    every = [claim for its in found.values() for claim in its]
    assert len(every) == len(claims(STUDY))
    counts = counts_of(table)
    html = index_html(
        Report(
            [page()],
            studies=[
                StudyReport(
                    STUDY,
                    [page()],
                    judged=Judged({"": every}, verdicts=counts, full={**counts, HOLDS: 2}),
                )
            ],
        ),
        NAVIGATION,
    )
    text = " ".join(read_page(html).text.split())
    assert f"✓ 1 holds, ? {len(every) - 1} not testable" in text
    assert f"At the paper's size: ✓ 2 holds, ? {len(every) - 1} not testable: the reference" in text
    link = 'href="claims.html#kolchinsky2018-'
    assert html.count(f'class="open" {link}') == len(every) - 1
    assert html.count(f'class="holds" {link}trivial-wins-contiguity"') == 1
    for claim in claims(STUDY):
        assert f"not testable: {claim.statement}" in html.replace("&#39;", "'") or (
            claim.id == "trivial-wins-contiguity"
        ), claim.id
    trivial = next(one for one in found["figure_9"] if "TRIVIAL" in one.statement)
    assert trivial.cells[-1].measured == "2.00" and found["figures_3_4_5"][0].verdict == OPEN


def test_the_ledger_says_what_holds_where() -> None:
    claim = claims(STUDY)[0]
    rows = pd.DataFrame(
        [{"paper": STUDY.key, "id": claim.id, "regime": regime, "engine": "columnar",
          "predicates": "", "basis": basis, "value": value, "low": value - 0.5, "high": value + 0.5,
          "verdict": verdict, "lack": "", "overall": PARTLY, "also": False,
          "is_timed": basis == "throughput"}
         for regime, value, verdict in (("sparse", 1.0, FAILS), ("dense", 3.0, HOLDS))
         for basis in ("partial matches", "throughput")]
    )  # fmt: skip
    numbers = pd.DataFrame(
        [{"id": name, "regime": regime, "engine": "columnar", "predicates": "", "basis": "",
          "value": value}
         for name in ("partial-matches-per-event", "dp-ld-saves", "dp-ld-over-efreq", "dp-b-saves")
         for regime, value in (("sparse", 1.1), ("dense", 15.0))]
    )  # fmt: skip
    gain = numbers[numbers["id"] == "dp-b-saves"].assign(id="dp-b-over-zstream", basis="throughput")
    lines = regime_lines(STUDY, rows, pd.concat([numbers, gain]))
    assert [regime for regime, _ in lines] == ["sparse", "dense"]
    assert lines[0][1].startswith("Of 1 claims, 1 does not hold. EFREQ's plans create 1.10 partial")
    assert lines[1][1].startswith("Of 1 claims, 1 holds. EFREQ's plans create 15.00 partial")
    assert regime_lines(STUDY, rows, numbers) == []  # a number is missing
    (headline,) = headlines(rows)
    study = StudyReport(STUDY, [page()], judged=Judged(headlines=[headline]))
    text = text_of(Report([], studies=[study]))
    assert "1.00 times the throughput of TRIVIAL and EFREQ: sparse 95 %: 0.50 to 1.50" in text
    assert "3.00 times" in text and "holds in part." in text


def test_a_claim_that_the_ledger_no_longer_has_is_left_out() -> None:
    table = by_claim(judged()).iloc[:2].replace({"id": {"join-orders-faster": "forgotten"}})
    assert sum(map(len, judged_claims(table).values())) == 1


def test_benchmarks_are_found_if_there_are_any(tmp_path: Path) -> None:
    assert benchmarks_in(tmp_path) == []
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    (folder / "bench_a_b.txt").write_text("A <b>  1.5\n", encoding="utf-8")
    (folder / "bench_a_b.parquet").write_bytes(b"")
    (folder / "bench_c.txt").write_text("no file given\n", encoding="utf-8")
    (folder / "bench_d.part").write_text("broke off\n", encoding="utf-8")
    found = benchmarks_in(tmp_path)
    assert [(b.name, b.printed, b.files) for b in found] == [
        ("a b", "A <b>  1.5\n", ["benchmarks/bench_a_b.parquet"]),
        ("c", "no file given\n", []),
    ]
    assert 'href="benchmarks.html"' in index_html(Report([], benchmarks=found), NAVIGATION)
