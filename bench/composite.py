"""Composite events: rates of ten thousand patterns and of a keyed one, of peers in the same run, one step and two.

Rows are printed as they are measured. `LIKEWISE_BENCH_ONLY=keyed` runs one part only: many, meaning, keyed, operators,
peers, restart, steps or responses. Rates are given in wall-clock time and in processor time, which other work on the
machine affects less.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def run(*, quick: bool = False) -> list[dict[str, object]]:
    """Rows for the table of `likewise bench composite`."""
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    from _composite_keyed import keyed, peers, restart
    from _composite_many import many, meaning
    from _composite_operators import operators
    from _composite_steps import responses, steps

    rows = []
    size = 100_000 if quick else 1_000_000
    for part in (many, meaning, keyed, operators, peers, restart, steps, responses):
        if os.environ.get("LIKEWISE_BENCH_ONLY", part.__name__) != part.__name__:
            continue
        for row in part(size, quick):
            rows.append(row)
            print("composite: " + " | ".join(str(cell) for cell in row.values()), file=sys.stderr, flush=True)
    return rows


if __name__ == "__main__":
    for line in run(quick="--quick" in sys.argv):
        print(line)
