"""The folders of the studies' sweeps keep their names, or results that users have would be measured again.

A name has a hash of all that is run, queries, plans and options among it.
"""

from __future__ import annotations

from cepbench.experiments.sweeps.sweep_file import SWEEP_FOLDERS, read_sweep

#: By study; a sweep's file or the defaults of its settings have changed if its number has.
FOLDERS = """
agrawal2008: merging-b2b0f747 non_overlap-8ac8e898 price_increase-05b47a9c queries-7c5b63fb
    window_size-9c8a7628
kolchinsky2018: instances-2b8fd2c4 latency-20f8faea latency_instances-d4950270 map-80b36967
    strategies-f1fbbc0a types-032f75db
liu2011: both-fa1666d2 children-09cd8263 concept-c4200866 negated_company-ada9876d
    over_time-f01b0407 pattern-55826aa9
mei2009: drift-774dfa7e drift_columnar-84bac104 negation-779e8cf7 plans-65f21abf rates-8159d7b5
    selectivity-1a8348ce web_log-e922cbf5
qi2014: construction-3bd70f78 counted-78ad8ec2 counted_windows-659b9d5a lengths-191d1591
    negated_ticker-654ec5fb prefixes-7e62a1e2 scalability-a57dbe37 tails-e570b8d5 windows-a50a721e
"""


def test_folders_of_results_keep_their_names() -> None:
    found = [
        f"{study}: {read_sweep(file).config('data').folder_name(file.stem)}"
        for study, folder in SWEEP_FOLDERS.items()
        for file in folder.glob("*.toml")
    ]
    study, expected = "", []
    for word in FOLDERS.split():
        if word.endswith(":"):
            study = word
        else:
            expected.append(f"{study} {word}")
    assert sorted(found) == sorted(expected)
