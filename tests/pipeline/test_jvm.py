"""The JVM has a process group of its own, and says only what is news."""

from __future__ import annotations

import os
from typing import Any

import pytest

pytest.importorskip("pyspark")

from likewise.pipeline.session import news


@pytest.mark.spark
def test_signals_to_our_process_group_do_not_reach_the_jvm(spark: Any) -> None:
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    assert gateway is not None
    assert os.getpgid(gateway.proc.pid) == gateway.proc.pid != os.getpgid(0)


def test_errors_pass_and_greetings_do_not() -> None:
    lines = [
        b"WARNING: Using incubator modules: jdk.incubator.vector\n",
        b"Starting Streaming TransformWithStateInPandas Python worker.\n",
        b"\n",
        b"Streaming TransformWithStateInPandas Python worker received parameters for UDF.\n",
        b"\n",
        b"Traceback (most recent call last):\n",
        b"\n",
        b"12:00:00 ERROR Executor: no space left",
    ]
    assert list(news(lines)) == lines[5:]
