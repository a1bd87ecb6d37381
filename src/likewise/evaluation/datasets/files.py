"""The thematic data set as files: events, subscriptions, truth, themes and a manifest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from likewise.evaluation.datasets.thematic import ThematicDataset, describe
from likewise.events import Event
from likewise.language import Subscription, format_subscription


def write_thematic(data: ThematicDataset, folder: Path) -> dict[str, Path]:
    """Write all files into a folder, which is created if needed; returns their paths by content."""
    folder.mkdir(parents=True, exist_ok=True)
    exact = (Subscription(s.name, profile) for s, profile in zip(data.subscriptions, data.exact, strict=True))
    seeds = (Event(f"seed{i:03}", seed) for i, seed in enumerate(data.seeds, start=1))
    texts: dict[str, Iterable[str]] = {
        "events.jsonl": map(_event_line, data.events),
        "seeds.jsonl": map(_event_line, seeds),
        "subscriptions.lw": map(format_subscription, data.subscriptions),
        "subscriptions-exact.lw": map(format_subscription, exact),
        "truth.tsv": truth_lines(data),
        "themes.jsonl": (msgspec.json.encode(pair).decode() for pair in _theme_pairs(data)),
        "manifest.json": [msgspec.json.format(msgspec.json.encode(describe(data)), indent=2).decode()],
    }
    for name, lines in texts.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return {name.split(".")[0]: folder / name for name in texts}


def truth_lines(data: ThematicDataset) -> Iterator[str]:
    """`subscription<tab>event` for every relevant pair, after a header."""
    yield "subscription\tevent"
    for subscription, row in zip(data.subscriptions, data.truth, strict=True):
        yield from (f"{subscription.name}\t{data.events[i].id}" for i in row.nonzero()[0])


def _event_line(event: Event) -> str:
    record = {"id": event.id, "theme": event.theme, "attributes": dict(event.tuples)}
    return msgspec.json.encode(record).decode()


def _theme_pairs(data: ThematicDataset) -> Iterator[dict[str, object]]:
    sizes = [size for size in (1, 2, 3, 5, 7, 10, 15, 20, 30) if size <= len(data.top_terms)]
    for events in sizes:
        for subscriptions in sizes:
            for sample in range(5):
                theme, wanted = data.themes(events, subscriptions, sample=sample)
                yield {"sample": sample, "events": theme, "subscriptions": wanted}
