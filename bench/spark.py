"""Matching and detection on Spark, compared with the same work in one process (`likewise bench spark`).

Rows are printed as they are measured. `_spark_run` measures; the other modules have the work that is measured.
`LIKEWISE_BENCH_GROWTH=1` adds the run over 20 million events; `LIKEWISE_BENCH_ONLY=match`, `detect`,
`stream`, `connect` or `dataset` runs that part only.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path


def run(*, quick: bool = False) -> list[dict[str, object]]:
    """Rows for the table."""
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import _spark_connect
    import _spark_dataset
    import _spark_detect
    import _spark_match
    from _spark_run import say

    parts = {
        "match": _spark_match.rows,
        "detect": _spark_detect.rows,
        "stream": _spark_detect.stream_rows,
        "connect": _spark_connect.connect_rows,
        "dataset": _spark_dataset.rows,
    }
    chosen = [part for name, part in parts.items() if os.environ.get("LIKEWISE_BENCH_ONLY", name) == name]
    rows = []
    with tempfile.TemporaryDirectory(prefix="likewise-bench-") as folder:
        for part in chosen:
            for row in part(Path(folder), quick=quick):
                rows.append(row)
                say(" | ".join(str(value) for value in row.values()))
    return rows


if __name__ == "__main__":
    for line in run(quick="--quick" in sys.argv):
        print(line)
