"""Ten thousand patterns at once: exact ones over one integer attribute, and approximate ones over words."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator

from _composite_world import Row, Words, best, deploy, rate, readings, ready, row, sequences, timed
from likewise.composite import Detector
from likewise.errors import LikewiseError
from likewise.language import Consumption

SPACE = "wordnet"


def many(size: int, quick: bool) -> Iterator[Row]:
    """Exact sequences, as in 003 section 5.1."""
    count = 1_000 if quick else 10_000
    stream = readings(size)
    for consumption in (Consumption.UNIQUE, Consumption.ALL_PAIRS):
        patterns = sequences(count, consumption=consumption)
        spent, _ = best(Detector, lambda d, p=patterns: deploy(d, p))  # type: ignore[misc]
        what = f"{count:,} sequences, {consumption.value}"
        deployed = row(f"{what}: deployed in", spent.wall, "s", "< 1 (Esper 31-51)")
        yield deployed | {"by processor time": round(spent.cpu, 3)}
        taken, found = best(lambda p=patterns: ready(p, stream), lambda d: d.publish_batch(stream[100:]))  # type: ignore[misc]
        yield rate(f"{what}: {size:,} events, {len(found):,} detections", size, taken, ">= 400,000")
    yield row(f"{count:,} sequences: memory", _memory(count), "bytes a pattern", "< 2,048")


def _memory(count: int) -> float:
    patterns = sequences(count, consumption=Consumption.UNIQUE)
    gc.collect()
    tracemalloc.start()
    detector = Detector()
    deploy(detector, patterns)
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return used / count


def meaning(size: int, quick: bool) -> Iterator[Row]:
    """`attribute~ = value~` over WordNet's nouns, by ESA at its default threshold; events use either of two synonyms.

    Twenty attributes and 2,500 values, two words for each: 200,000 different pairs, as many as 003 has numbers.
    """
    from likewise.matching import Matcher
    from likewise.semantics import find_space, measure

    count = 1_000 if quick else 10_000
    what = f"{count:,} sequences of approximate profiles, ESA over {SPACE}"
    try:
        space = find_space(SPACE)
        words = Words.of_wordnet(attributes=20, values=250 if quick else 2_500)
    except LikewiseError as error:
        yield {"what": what, "value": "skipped", "unit": "events/s", "note": error.message}
        return
    patterns, stream = words.sequences(count), words.readings(size)
    detector = Detector(matcher=Matcher(measure("esa", spaces=[space]), approach="approximate"))
    deployed, _ = timed(lambda: deploy(detector, patterns))
    yield row(f"{what}: deployed in", deployed.wall, "s") | {"by processor time": round(deployed.cpu, 3)}
    detector.publish_batch(stream[:100])
    pairs = len({event.tuples for event in stream})
    taken, found = timed(lambda: detector.publish_batch(stream[100:]))
    new = f"{what}: {size:,} events, {len(found):,} detections"
    yield rate(new, size, taken, ">= 100,000") | {"note": f"with {pairs:,} pairs of words, all new"}
    later = words.readings(size, seed=3)
    for at, event in enumerate(later):
        later[at] = type(event)(event.id, event.tuples, (), 1000 * (size + at), 1000 * (size + at))
    taken, found = timed(lambda: detector.publish_batch(later))
    yield rate(f"{what}: {size:,} more, {len(found):,} detections", size, taken, ">= 100,000") | {
        "note": "all words known"
    }
