"""The pages of the documentation: what they show works, what they link is there, they build."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.version import Version

import cepbench as cep
from cepbench.papers import REFERENCES
from tests.presentation.reporting.offline import read_page

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))

#: Pages whose code is run from top to bottom, with no name that it does not define.
SHOWN = (
    "user_defined_generators", "user_defined_evaluators", "adaptation", "automata", "aggregates",
    "workloads", "engine", "language", "choosing", "from_sql", "conformance",
)  # fmt: skip

#: A piece of code, and what it prints where that is shown.
PIECE = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", re.DOTALL)


@pytest.mark.parametrize("stem", SHOWN)
def test_the_code_of_a_how_to_page_runs(
    stem: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pieces = PIECE.findall((DOCS / f"{stem}.md").read_text(encoding="utf-8"))
    assert len(pieces) > 1
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(cep, "compare", partial(cep.compare, seconds=0))
    names: dict[str, Any] = {"__name__": "__main__"}
    for code, shown in pieces:
        exec(compile(code, f"{stem}.md", "exec"), names)
        printed = capsys.readouterr().out
        assert "FAILED" not in printed
        if shown:
            assert [line.rstrip() for line in printed.splitlines()] == shown.splitlines()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_page_is_in_the_contents(page: Path) -> None:
    contents = (DOCS / "index.md").read_text(encoding="utf-8").splitlines()
    assert page.stem in contents or page.stem == "index"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_link_leads_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (page.parent / link).exists(), link
    for path in re.findall(r"`((?:notebooks|tests|docs|cepbench|benchmarks)/[\w./]*)`", text):
        assert (ROOT / path).exists(), path


def test_the_reference_has_every_package() -> None:
    listed = set(
        re.findall(
            r"^_generated/([\w-]+)$", (DOCS / "reference" / "index.md").read_text("utf-8"), re.M
        )
    )
    files = (path.relative_to(ROOT / "cepbench") for path in (ROOT / "cepbench").glob("*/**/*.py"))
    packages = {
        "-".join(path.parts[:-1][:2])
        for path in files
        if path.stem != "__init__" and "kernels" not in path.parts
    }
    assert listed == packages | {"errors"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages with one package of the reference; ``make docs`` reads all docstrings."""
    folder = tmp_path_factory.mktemp("docs")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html",
         "-D", "packages=planning-plans", "-d", str(folder / "read"), str(DOCS), str(folder / "html")],
        capture_output=True, encoding="utf-8", cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return folder / "html"


@pytest.mark.xdist_group("documentation")  # built once
def test_the_pages_build_without_a_warning(built: Path) -> None:
    assert {path.stem for path in built.glob("*.html")} >= {page.stem for page in PAGES}
    plans = (built / "reference" / "_generated" / "planning-plans.html").read_text(encoding="utf-8")
    assert 'id="cepbench.planning.plans.model.OrderPlan"' in plans
    names = read_page((built / "reference" / "index.html").read_text(encoding="utf-8")).text
    for name in ("check_generator", "EventStream", "compare"):
        assert name in names
    cited = read_page((built / "reference" / "bibliography.html").read_text("utf-8")).text
    for reference in REFERENCES.values():
        assert reference.title in " ".join(cited.split())


@pytest.mark.xdist_group("documentation")  # built once
def test_the_pages_need_no_network(built: Path) -> None:
    for path in built.rglob("*.html"):
        page = read_page(path.read_text(encoding="utf-8"))
        for tag, attributes in page.elements:
            loaded = attributes.get("src" if tag in ("script", "img", "iframe") else "href", "")
            if tag in ("script", "img", "iframe", "link"):
                assert not re.match(r"(?:https?:)?//", loaded or ""), f"{path.name}: {loaded}"


@pytest.mark.xdist_group("documentation")  # built once
def test_every_page_leads_back_to_the_report(built: Path) -> None:
    """The pages lie in the report's folder ``docs``, at any depth."""
    pages = [built / "index.html", built / "language.html",
             built / "reference" / "_generated" / "planning-plans.html"]  # fmt: skip
    for path in pages:
        links = [
            attributes.get("href", "")
            for tag, attributes in read_page(path.read_text(encoding="utf-8")).elements
            if tag == "a"
        ]
        assert (built.parent / "index.html") in [(path.parent / link).resolve() for link in links]


def test_the_site_is_made_with_its_documentation_and_ci_makes_all_of_it() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^report: docs ", makefile, re.MULTILINE)
    assert re.search(r"sphinx -q -W .* docs reports/docs$", makefile, re.MULTILINE)
    commands = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    for command in ("make test", "make lint", "make report REPORT_ARGS=--strict"):
        assert command in commands


def test_the_citation_file_is_valid_and_cites_the_five_papers() -> None:
    found = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= found.keys()
    assert found["cff-version"] == "1.2.0" and found["type"] == "software"
    listed = {reference["title"]: reference["doi"] for reference in found["references"]}
    for key in ("kolchinsky2018", "mei2009", "agrawal2008", "qi2014", "liu2011"):
        assert listed[REFERENCES[key].title] == REFERENCES[key].doi, key
    for reference in found["references"]:
        assert reference["type"] in {"article", "conference-paper"}
        assert reference["authors"] and all(
            {"family-names", "given-names"} <= author.keys() for author in reference["authors"]
        )
        assert reference["start"] < reference["end"]
        assert ("journal" in reference) != ("conference" in reference)
        assert re.fullmatch(r"10\.\d{4,9}/\S+", reference["doi"])


def test_the_change_log_begins_with_what_is_not_released() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[(.+?)\](?: - (\S+))?$", text, re.MULTILINE)
    assert versions[0] == ("Unreleased", "")
    for _, day in versions[1:]:
        assert date.fromisoformat(day)
    kinds = set(re.findall(r"^### (.+)$", text, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_version_and_day_of_the_release_are_the_same_everywhere() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    (version, day), *_ = re.findall(r"^## \[(\d.+?)\] - (\S+)$", changes, re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert project["version"] == str(Version(version)) == cited["version"]
    assert cited["date-released"] == day and date.fromisoformat(day)


def words_of(picture: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(picture).iter() if element.text]


def test_the_pictures_are_current() -> None:
    """What they say is what is drawn now; colours may differ until they are drawn again."""
    spec = importlib.util.spec_from_file_location("pictures", DOCS / "pictures.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, drawn in module.pictures().items():
        kept = (DOCS / name).read_text(encoding="utf-8")
        assert words_of(kept) == words_of(drawn), f"run docs/pictures.py again for {name}"
        assert len(kept) < 50_000
    layers = module.layers_of((DOCS / "architecture.md").read_text(encoding="utf-8"))
    words = words_of((DOCS / "layers.svg").read_text(encoding="utf-8"))
    assert len(layers) == 7 and set(layers) <= set(words)
    assert {package for packages in layers.values() for package in packages} <= set(words)
