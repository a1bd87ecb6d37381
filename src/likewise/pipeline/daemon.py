"""Spark's Python daemon with everything loaded before it forks (`spark.python.daemon.module`).

A worker that had to import pandas, Numba and the rest for itself, and to load compiled kernels from the disk, would
spend seconds on it, and a stream starts workers in every micro-batch. Forked from a daemon that has them, workers start
at once and share the memory.
"""

from __future__ import annotations

import gc
import sys
from contextlib import suppress
from importlib.machinery import PathFinder
from pathlib import Path


def unpacked(path: list[str]) -> list[str]:
    """A search path without the archives of a pyspark that also lies unpacked around them.

    Spark puts its own archives first. Out of an archive all is compiled from its source, at every start.

    >>> unpacked(["/a/pyspark.zip", "/b"])
    ['/a/pyspark.zip', '/b']
    """
    rest = [entry for entry in path if not entry.endswith(".zip")]
    found = PathFinder.find_spec("pyspark", rest)
    if found is None or found.origin is None or PathFinder.find_spec("py4j", rest) is None:
        return path
    archives = Path(found.origin).parent / "python" / "lib"
    return [entry for entry in path if Path(entry).parent != archives or not entry.endswith(".zip")]


def preload() -> None:
    """Import what workers need, and let compiled code that is on the disk run once."""
    import pandas  # noqa: F401 - pyarrow asks for it at its first array
    import pyspark.sql.pandas.serializers
    import pyspark.worker  # noqa: F401 - what every worker begins with

    import likewise.pipeline.detection.stream
    import likewise.pipeline.events.read  # noqa: F401 - loaded to be shared

    # Kernels without a cache are compiled where they are used first; an error here would occur in a worker too, and is
    # reported there.
    with suppress(Exception):
        if _is_compiled():
            rehearse()


def _is_compiled() -> bool:
    from likewise.composite import kernel_is_cached

    return kernel_is_cached()


def rehearse() -> int:
    """One small batch on its way through matching and detection; gives the number of detections."""
    from likewise.events import Event
    from likewise.pipeline.detection.batch import DetectTask
    from likewise.pipeline.detection.route import RouteTask
    from likewise.pipeline.events.frame import batch_of
    from likewise.pipeline.matching import ScoreTask
    from likewise.pipeline.streaming.subscriptions import FixedRecipe
    from likewise.recipe import Recipe

    kinds = "ab" * 64
    events = [Event(str(at), (("kind", kind), ("key", "k")), (), at, at) for at, kind in enumerate(kinds)]
    batch = batch_of(events)
    list(ScoreTask(Recipe.of("one: {kind = a}"))([batch]))
    pair = FixedRecipe(Recipe.of("pair: {kind = a} as x then first {kind = b} as y within 1 s where x.key = y.key"))
    return sum(found.num_rows for found in DetectTask(pair, 1)(RouteTask(pair, 1)([batch])))


if __name__ == "__main__":
    sys.path[:] = unpacked(sys.path)
    sys.path_importer_cache.clear()
    preload()
    # Objects loaded so far are never freed; if a worker's collector visited them, their pages would be copied.
    gc.freeze()
    from pyspark.daemon import manager

    manager()
