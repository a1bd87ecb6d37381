"""Events at scale on Spark: matching and detection, beside the same work in one process (`likewise bench spark`).

Rows are printed as they come. `_spark_run` has how they are measured, the other modules what is measured.
`LIKEWISE_BENCH_GROWTH=1` adds the run over 20 million events; `LIKEWISE_BENCH_ONLY=match`, `detect`,
`stream` or `dataset` runs that part alone.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path


def run(*, quick: bool = False) -> list[dict[str, object]]:
    """Rows for the table."""
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import _spark_dataset
    import _spark_detect
    import _spark_match
    from _spark_run import say

    parts = {
        "match": _spark_match.rows,
        "detect": _spark_detect.rows,
        "stream": _spark_detect.stream_rows,
        "dataset": _spark_dataset.rows,
    }
    chosen = [part for name, part in parts.items() if os.environ.get("LIKEWISE_BENCH_ONLY", name) == name]
    found = []
    with tempfile.TemporaryDirectory(prefix="likewise-bench-") as folder:
        for part in chosen:
            for each in part(Path(folder), quick=quick):
                found.append(each)
                say(" | ".join(str(value) for value in each.values()))
    return found


if __name__ == "__main__":
    for line in run(quick="--quick" in sys.argv):
        print(line)
