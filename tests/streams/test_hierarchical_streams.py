"""Company trades and evacuation: the same events whatever the parts, rates as asked, their concepts."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.errors import DatasetError
from cepbench.streams.company_trades import COMPANIES, CompanyTrades
from cepbench.streams.evacuation import HIERARCHY, ROUTES, Evacuation
from cepbench.streams.generated import make_stream

RATES = st.dictionaries(st.sampled_from(COMPANIES), st.sampled_from([0.01, 0.5, 3, 10.0]))


def frame(stream: CompanyTrades | Evacuation, first: int, last: int) -> pd.DataFrame:
    return stream.table(first, last).to_pandas()


@given(
    seed=st.integers(0, 2**63 - 1),
    count=st.integers(1, 60),
    rates=RATES,
    segments=st.lists(RATES, max_size=3),
    cuts=st.lists(st.integers(0, 60), max_size=4),
)
def test_parts_are_the_whole(
    seed: int, count: int, rates: Any, segments: Any, cuts: list[int]
) -> None:
    for stream, more in (
        (CompanyTrades(count, seed, rates, segments), {"events": count + 9}),
        (Evacuation(count, seed), {"persons": count + 9}),
    ):
        ends = sorted({0, count, *(min(cut, count) for cut in cuts)})
        parts = [frame(stream, *ends_of) for ends_of in pairwise(ends)]
        parts = pd.concat(parts, ignore_index=True)
        if "sequence" in parts:
            parts = parts.sort_values(["ts", "sequence"], ignore_index=True)
        whole = frame(stream, 0, count)
        pd.testing.assert_frame_equal(parts, whole)
        assert whole.ts.is_monotonic_increasing
        if not segments:
            pd.testing.assert_frame_equal(frame(replace(stream, **more), 0, count), whole)


def test_trades_have_the_rates_that_were_asked() -> None:
    """Of 1000 a second, a sixteenth of a company; a higher rate of one leaves the others'."""
    events, factor = 200_000, 10.0
    usual, changed = (
        frame(CompanyTrades(events, 1, rates), 0, events) for rates in ({}, {"DELL": factor})
    )
    assert usual.ts.to_numpy().view("i8")[-1] == (events - 1) * 1000
    for trades, dell in ((usual, 1.0), (changed, factor)):
        seconds = trades.ts.to_numpy().view("i8")[-1] / 1e6
        counts = trades.symbol.value_counts()
        assert set(counts.index) == set(COMPANIES)
        for company, count in counts.items():
            expected = 62.5 * seconds * (dell if company == "DELL" else 1.0)
            assert abs(count - expected) < 5 * expected**0.5


def test_segments_replace_rates_one_after_the_other() -> None:
    trades = frame(CompanyTrades(90_000, 1, {"QQQ": 0}, [{}, {"DELL": 0}, {"QQQ": 35}]), 0, 90_000)
    seen = [set(trades.symbol[k : k + 30_000]) for k in (0, 30_000, 60_000)]
    assert seen == [set(COMPANIES) - {"QQQ"}, set(COMPANIES) - {"QQQ", "DELL"}, set(COMPANIES)]
    assert (trades.symbol[60_000:] == "QQQ").mean() == pytest.approx(0.7, abs=0.02)


def test_persons_take_the_routes_and_are_read_in_order() -> None:
    read = frame(Evacuation(20_000, 1), 0, 20_000)
    assert len(read) == pytest.approx(Evacuation(20_000).expected, rel=0.01)
    city = read.symbol.astype(str).str[0]
    assert set(city) == set("GADOT")
    stop = read.symbol.astype(str).str[1:].map({"BusStation": 0, "Shelter": 1, "Hospital": 2})
    by_person = read.assign(city=city, stop=stop).groupby("id", sort=False)
    routes = by_person.city.agg(lambda cities: "".join(dict.fromkeys(cities)))
    shares = routes.value_counts() / len(routes)
    assert set(shares.index) == set(ROUTES)
    for route, share in ROUTES.items():
        assert shares[route] == pytest.approx(share, abs=5 * (share / len(routes)) ** 0.5)
    # Stops within a city in order, so that a city begins at its bus station.
    steps = read.assign(city=city, stop=stop).sort_values(["id", "ts"], kind="stable")
    same = (steps.id.diff() == 0) & (steps.city == steps.city.shift())
    assert (steps.stop.diff()[same] > 0).all() and (steps.stop[~same] == 0).all()
    assert by_person["age-group"].nunique().eq(1).all()
    assert (read.id == read.person_id).all() and read.sequence.is_unique


@pytest.mark.parametrize("stream", [CompanyTrades(900, 5), Evacuation(900, 5)])
def test_files_make_one_stream_with_its_concepts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: Any
) -> None:
    whole = frame(stream, 0, 900)
    monkeypatch.setattr(type(stream), "per_file", 400)
    declared = make_stream(tmp_path, stream)
    assert len(stream.files()) == 3 and declared.events == len(whole)
    read = cep.EventStream.from_parquet(tmp_path)
    assert read.to_pandas()["type"].tolist() == whole["symbol"].tolist()
    assert read.timestamps.tolist() == whole["ts"].to_numpy().astype("M8[ns]").view("i8").tolist()
    assert read.hierarchy is not None and read[:5].hierarchy == read.hierarchy
    concept = read.hierarchy.children(read.hierarchy.roots[0])[1]
    some = cep.EventStream.from_parquet(tmp_path, types=[concept])
    assert len(some) == len(read.rows_of(concept)) > 0
    dataset = cep.open_dataset(tmp_path)
    assert dataset.hierarchy == read.hierarchy and len(dataset.stream([concept])) == len(some)
    with pytest.raises(DatasetError, match="no events of type 'Compny'"):
        dataset.stream(["Compny"])
    with pytest.raises(DatasetError, match="no events of type 'Compny'"):
        cep.EventStream.from_parquet(tmp_path, types=["Compny"])


def test_other_files_state_no_hierarchy(tmp_path: Path) -> None:
    table = pa.table({"symbol": ["A"], "ts": [1]})
    pq.write_table(table, tmp_path / "x.parquet")
    assert cep.EventStream.from_parquet(tmp_path / "x.parquet").hierarchy is None


def test_the_workload_of_figure_1_refines_as_printed() -> None:
    """Ten pairs, of which seven are direct."""
    library = cep.open_dataset("evacuation/sample").patterns
    queries = {name: pattern for name, pattern in library.items() if name != "q1"}
    workload = cep.Workload(queries, hierarchy=HIERARCHY)
    assert workload.refinements["direct"].sum() == 7
    assert len(workload.refinements) == 10


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: CompanyTrades(0), "events must be at least 1, not 0"),
        (
            lambda: CompanyTrades(9, rates={"DEL": 1}),
            "rates: each name is one of .*, not 'DEL'; did you mean 'DELL'",
        ),
        (lambda: CompanyTrades(9, rates={"DELL": -1}), "the rate of DELL must be at least 0"),
        (lambda: CompanyTrades(9, rates=[1]), "rates must be a table such as"),
        (
            lambda: CompanyTrades(9, rates=dict.fromkeys(COMPANIES, 0)),
            "at least one company needs a rate above 0",
        ),
        (lambda: CompanyTrades(9, segments=[{"x": 1}]), "rates: each name is one of .*, not 'x'"),
        (lambda: Evacuation(0), "persons must be at least 1, not 0"),
        (lambda: Evacuation(9, -1), "seed must be at least 0"),
    ],
)
def test_mistakes_say_what_is_wrong(make: Any, told: str) -> None:
    with pytest.raises(DatasetError, match=told):
        make()
