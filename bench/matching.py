"""Approximate matching: the papers' load, growth to a million subscriptions, new words, change while running.

Rows are printed as they are measured. `LIKEWISE_BENCH_ONLY=growth` runs one part only: papers, growth, index_recall,
new_words, change, churn or peers. Times are those of the measuring thread, to exclude other work on the machine.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from likewise.errors import LikewiseError

SPACE = "wikipedia"


def run(*, quick: bool = False) -> list[dict[str, object]]:
    """Rows for the table of `likewise bench matching`."""
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    from _matching_growth import change, churn, growth, new_words
    from _matching_load import papers, peers
    from _matching_recall import index_recall
    from likewise.evaluation.datasets.thematic import build_thematic
    from likewise.semantics import find_space

    try:
        space, data = find_space(SPACE), build_thematic()
    except LikewiseError as error:
        note = f"skipped: {error.message}"
        return [{"what": "approximate matching", "value": None, "unit": "events/s", "note": note}]
    parts = (papers, growth, index_recall, new_words, change, churn, peers)
    rows = []
    for part in parts:
        if os.environ.get("LIKEWISE_BENCH_ONLY", part.__name__) != part.__name__:
            continue
        for row in part(space, data, quick):
            rows.append(row)
            print("matching: " + " | ".join(str(cell) for cell in row.values()), file=sys.stderr)
    return rows


if __name__ == "__main__":
    for line in run(quick="--quick" in sys.argv):
        print(line)
