"""The picture of the front page shows what its two plans do."""

import re

import cepbench as cep
from cepbench.presentation.reporting.front_picture import (
    BATCH,
    DATASET,
    GENERATORS,
    PATTERN,
    front_picture,
)


def test_the_numbers_of_the_picture_are_those_of_its_plans() -> None:
    drawn, caption = front_picture()
    texts = [" ".join(re.sub(r"<[^>]+>", " ", drawn).split())]
    dataset = cep.open_dataset(DATASET)
    stream, pattern = dataset.stream(), dataset.patterns[PATTERN]
    statistics = cep.measure_statistics(pattern, stream)
    created, matches = [], set()
    for generator in GENERATORS:
        plan = cep.plan(pattern, statistics, generator)
        detector = cep.Detector(pattern, plan)
        found = sum(len(detector.push(batch)) for batch in stream.batches(BATCH))
        matches.add(found + len(detector.flush()))
        created.append(int(detector.metrics().partial_matches_created))
        types = {variable.name: variable.type for variable in pattern.variables}
        order = " → ".join(types[name] for name in plan.parts[0].names)
        assert f"{order} {created[-1]:,} partial matches ({generator})" in texts[0]
    assert created[0] > 100 * created[1]  # what the picture is for
    assert {f"{number:,}" for number in (*matches, len(stream))} == {
        *re.findall(r"[\d,]*\d", caption)
    }
