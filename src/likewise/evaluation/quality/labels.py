"""Labelled pairs: which events are relevant to which subscriptions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from likewise.errors import InputError
from likewise.evaluation.quality.ranking import Relevance
from likewise.files import read_whole

_YES = frozenset({"1", "true", "yes", "y", "relevant"})
_NO = frozenset({"0", "false", "no", "n", "irrelevant"})


@dataclass(frozen=True, slots=True)
class Labels:
    """Labelled pairs; if `complete`, all other pairs are irrelevant."""

    pairs: dict[tuple[str, str], bool]
    complete: bool
    source: str = "<labels>"

    def tables(self, subscriptions: Sequence[str], events: Sequence[str]) -> tuple[Relevance, Relevance]:
        """Relevant pairs and labelled pairs, a row per subscription and a column per event."""
        rows, columns = ({name: i for i, name in enumerate(names)} for names in (subscriptions, events))
        relevant = np.zeros((len(subscriptions), len(events)), np.bool_)
        judged = np.full_like(relevant, self.complete)
        for (subscription, event), yes in self.pairs.items():
            if subscription not in rows or event not in columns:
                unknown = f"subscription {subscription!r}" if subscription not in rows else f"event {event!r}"
                raise InputError(f"a label names the unknown {unknown}", source=self.source, hint="check names and ids")
            relevant[rows[subscription], columns[event]] = yes
            judged[rows[subscription], columns[event]] = True
        if not relevant.any():
            raise InputError("no pair is labelled relevant", source=self.source, hint="label some matches too")
        return relevant, judged


def read_labels(path: Path) -> Labels:
    """Read labels from TSV (subscription, event and optionally relevant) or from JSON lines.

    With two columns all other pairs are irrelevant; with a third column only the listed pairs count.
    """
    rows = list(_rows(read_whole(path).splitlines(), str(path)))
    if not rows:
        raise InputError("the file has no labels", source=str(path), hint="write subscription, event id and 1 or 0")
    complete = all(yes is None for _, _, yes in rows)
    return Labels({(s, e): yes is not False for s, e, yes in rows}, complete, str(path))


def _rows(lines: Sequence[str], source: str) -> Iterator[tuple[str, str, bool | None]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        if line.lstrip().startswith("{"):
            yield _from_json(line, source, number)
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        if number == 1 and [cell.lower() for cell in cells[:2]] == ["subscription", "event"]:
            continue
        if len(cells) not in (2, 3) or not all(cells):
            raise InputError(
                f"not a label: {line!r}", source=source, line=number, hint="subscription, event id, 1 or 0, with tabs"
            )
        yield cells[0], cells[1], _judgement(cells[2], source, number) if len(cells) == 3 else None


def _from_json(line: str, source: str, number: int) -> tuple[str, str, bool | None]:
    try:
        record = msgspec.json.decode(line)
        yes, pair = record.get("relevant"), (str(record["subscription"]), str(record["event"]))
    except (msgspec.DecodeError, KeyError) as error:
        hint = 'for example {"subscription": "s1", "event": "e1", "relevant": true}'
        raise InputError(f"not a label: {error}", source=source, line=number, hint=hint) from None
    return *pair, None if yes is None else _judgement(str(yes), source, number)


def _judgement(text: str, source: str, number: int) -> bool:
    if text.lower() in _YES:
        return True
    if text.lower() in _NO:
        return False
    raise InputError(f"relevant is {text!r}", source=source, line=number, hint="write 1 or 0, yes or no")
