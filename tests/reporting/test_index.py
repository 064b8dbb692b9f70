"""The index says what, when, where and with what; every text in it is text."""

from __future__ import annotations

import platform
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy
import pytest

import cepbench as cep
from cepbench.experiments.profiles import EXPERIMENTS
from cepbench.reporting.index import (
    Page,
    Report,
    full_profile,
    index_html,
    machine,
    versions,
)
from cepbench.reporting.site import benchmarks_in
from tests.reporting.chromium import open_page
from tests.reporting.offline import read_page

EVIL = "<script>alert(1)</script>"


def report_of(*pages: Page, seed: int = 17) -> Report:
    started = datetime(2020, 2, 29, 23, 59, tzinfo=timezone(timedelta(hours=-5)))
    return Report("quick", seed, started, 125.4, pages)


def page(folder: Path, name: str = "Figures") -> Page:
    picture = folder / f"{name[:3]}_1.png".replace("<", "")
    picture.write_bytes(b"\x89PNG\r\n")
    return Page(
        title=name,
        summary=f"About {name}",
        link="figures.html",
        seconds=61.0,
        parameters={"profile": "quick", "pattern": name},
        pictures=[picture],
        files=["figures/a b.parquet"],
    )


def test_the_index_says_what_when_and_with_what(tmp_path: Path) -> None:
    html = index_html(report_of(page(tmp_path)))
    parsed = read_page(html)
    text = " ".join(parsed.text.split())
    for expected in (
        "Figures", "About Figures", "ran for 1 min 1 s", "2020-03-01 04:59 UTC", "2 min 5 s",
        f"python {platform.python_version()}",
        f"cepbench {cep.__version__}", f"numpy {numpy.__version__}", "pyspark",
    ):  # fmt: skip
        assert expected in text, expected
    for name, value in {"profile": "quick", "seed": "17"}.items():
        assert f"<dt>{name}</dt><dd>{value}</dd>" in html
    links = [attributes["href"] for tag, attributes in parsed.elements if tag == "a"]
    assert "figures.html" in links and "figures/a%20b.parquet" in links
    pictures = [attributes["src"] for tag, attributes in parsed.elements if tag == "img"]
    assert len(pictures) == 1 and pictures[0].startswith("data:image/png;base64,")


def test_the_index_loads_nothing_and_forbids_it(tmp_path: Path) -> None:
    parsed = read_page(index_html(report_of(page(tmp_path))))
    assert parsed.loads == []
    assert parsed.scripts == []
    policies = [a["content"] for tag, a in parsed.elements if "http-equiv" in a]
    assert len(policies) == 1 and policies[0].startswith("default-src 'none'")


def test_names_are_text_and_never_markup(tmp_path: Path) -> None:
    parsed = read_page(index_html(report_of(page(tmp_path, EVIL))))
    assert parsed.scripts == []
    assert parsed.text.count(EVIL) == 3  # title, summary, parameter


def test_a_report_without_a_notebook_s_words_is_whole() -> None:
    plain = Page(title="T", summary="", link="t.html", seconds=0.2, parameters={})
    text = read_page(index_html(report_of(plain))).text
    assert "ran for 0 s" in text and "files" not in text


def test_the_machine_has_no_name_and_versions_are_all_known() -> None:
    assert set(machine()) == {"processor", "cores"}
    assert platform.node() == "" or platform.node() not in "".join(machine().values())
    assert all(version[0].isdigit() for version in versions().values())


def test_the_time_is_in_utc() -> None:
    report = Report("quick", 0, datetime(2021, 5, 6, 7, 8, tzinfo=UTC), 1.0, ())
    assert "2021-05-06 07:08 UTC" in index_html(report)


@pytest.mark.xdist_group("notebooks")
def test_the_index_opens_in_a_browser_without_a_network(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(index_html(report_of(page(tmp_path))), encoding="utf-8")
    opened = open_page(tmp_path / "index.html")
    assert opened.console == []
    assert "About Figures" in opened.html


def test_the_ledger_at_a_glance_is_there_if_there_is_a_ledger(tmp_path: Path) -> None:
    without = report_of(page(tmp_path))
    assert "ledger.html" not in index_html(without)
    html = index_html(replace(without, verdicts={"hold": 12, "do not <b>hold</b>": 3}))
    text = " ".join(read_page(html).text.split())
    assert "the 15 claims" in text and "12 hold" in text and "3 do not <b>hold</b>" in text
    assert 'href="ledger.html"' in html


def test_benchmarks_are_shown_if_there_are_any(tmp_path: Path) -> None:
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
    without = report_of(page(tmp_path))
    assert "make bench" not in index_html(without)
    html = index_html(replace(without, benchmarks=found))
    assert "A &lt;b&gt;  1.5" in html and 'href="benchmarks/bench_a_b.parquet"' in html


def test_the_estimate_of_the_full_profile_says_how_long_on_what(tmp_path: Path) -> None:
    path = tmp_path / "kept.toml"
    assert full_profile(path) is None
    hours = "\n".join(f"{name} = [8.0, 6.0, 11.5]" for name in EXPERIMENTS)
    path.write_text(f'cores = 2\nprocessor = "X <1>"\n[hours]\n{hours}\n', encoding="utf-8")
    kept = full_profile(path)
    assert kept is not None and kept.total == (24.0, 18.0, 34.5) and len(EXPERIMENTS) == 3
    html = index_html(replace(report_of(page(tmp_path)), full_profile=kept))
    text = " ".join(read_page(html).text.split())
    assert "24.0 hours (95 %: 18.0 to 34.5) on 2 cores (X <1>)" in text
    assert text.count("8.0 hours (6.0 to 11.5)") == 3 and "not estimated" not in text
    last = list(EXPERIMENTS)[-1]
    path.write_text(path.read_text(encoding="utf-8").replace(f"{last} =", f"# {last} ="))
    html = index_html(replace(report_of(page(tmp_path)), full_profile=full_profile(path)))
    text = " ".join(read_page(html).text.split())
    assert "16.0 hours" in text
    assert f"{EXPERIMENTS[last]} not estimated, and not in this sum" in " ".join(
        html.replace("</dt><dd>", " ").split()
    )
    without = index_html(replace(report_of(page(tmp_path)), full_profile=None))
    assert "whole experiment" not in without
