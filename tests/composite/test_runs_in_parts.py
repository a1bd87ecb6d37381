"""`likewise detect --snapshot` gives the same for a trace in parts as for the whole, also with late events."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from guard_check import builds, by_definition
from guard_worlds import SECOND, Case, make
from typer.testing import CliRunner

from likewise.cli import app as _app
from likewise.events import Event, encode_line, to_datetime
from likewise.language import format_subscription

CASES = range(16)
"""Cases of the guard, of which half are usable; each runs the command up to four times."""
APP = _app.build()


def test_a_trace_in_parts_is_as_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: Counter[str] = Counter()
    for seed in CASES:
        case, random = make(seed), Random(seed)
        if not (builds(case) and by_definition(case)):
            continue
        # Small files take the general path.
        monkeypatch.setattr("likewise.cli.commands.subscribing.detect.SMALL", 0 if seed % 2 else 1 << 22)
        lateness = random.choice((0, 3))
        arrivals = sorted(case.trace, key=lambda event: event.end + random.uniform(0, lateness * SECOND))
        cuts = chosen_cuts(arrivals, random)
        parts = [arrivals[a:b] for a, b in itertools.pairwise((0, *cuts, len(arrivals)))]
        folder = tmp_path / str(seed)
        folder.mkdir()
        (folder / "p.lw").write_text("\n".join(map(format_subscription, case.patterns)))
        whole = detected(folder, [arrivals], case, lateness=lateness)
        assert detected(folder, parts, case, lateness=lateness) == whole, case.text()
        if not lateness:
            assert len(whole) == len(by_definition(case)), case.text()
        seen.update(what_occurred(parts, lateness=lateness))
        seen["several detections"] += len(whole) > 1
    wanted = ("cut at equal times", "late over a cut", "cut in order", "several detections")
    assert not [feature for feature in wanted if not seen[feature]], seen


def chosen_cuts(arrivals: list[Event], random: Random) -> list[int]:
    """Two cut positions, one of them between equal times or out of order, if there is any."""
    close = [at for at in range(1, len(arrivals)) if arrivals[at].end <= arrivals[at - 1].end]
    places = random.sample(range(1, len(arrivals)), 2)
    return sorted({places[0], random.choice(close or places[1:])})


def what_occurred(parts: list[list[Event]], *, lateness: int) -> set[str]:
    out = set()
    for before, after in itertools.pairwise(parts):
        latest, next_one = max(event.end for event in before), after[0].end
        out.add("cut at equal times" if before[-1].end == next_one else "cut in order")
        if lateness and min(event.end for event in after) < latest:
            out.add("late over a cut")
    return out


def detected(folder: Path, parts: list[list[Event]], case: Case, *, lateness: int) -> list[object]:
    """The output of all runs; the last one closes event time."""
    state, out = folder / f"{len(parts)}.bin", []
    for number, part in enumerate(parts):
        file = folder / f"{len(parts)}-{number}.jsonl"
        file.write_bytes(b"".join(encode_line(event) for event in part))
        arguments = [str(file), str(folder / "p.lw"), "--json", "--snapshot", str(state), "--lateness", f"{lateness} s"]
        if number == len(parts) - 1:
            arguments += ["--until", to_datetime(case.horizon).isoformat()]
        result = CliRunner().invoke(APP, ["detect", *arguments], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        out += [json.loads(line) for line in result.stdout.splitlines()]
    return out
