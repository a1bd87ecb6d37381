"""Spark's Python daemon with everything loaded before it forks (`spark.python.daemon.module`).

A worker that had to import NumPy, Numba and the rest for itself would spend seconds on it, and a stream starts
workers in every micro-batch. Forked from a daemon that has them, workers start at once and share the memory.
"""

from __future__ import annotations

import likewise.pipeline._detect_stream
import likewise.pipeline._match
import likewise.pipeline._read  # noqa: F401 - loaded to be shared

if __name__ == "__main__":
    from pyspark.daemon import manager

    manager()
