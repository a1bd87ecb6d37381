"""What went wrong in a stream is one line that says so."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from likewise.pipeline.trouble import stream_failure

WORKER = """[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted due to stage failure: Task 0 in stage
3.0 failed 4 times: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 10, in main
    process()
  File "task.py", line 3, in __call__
    raise ValueError("no such room")
ValueError: no such room

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:1)
Driver stacktrace:
=== Streaming Query ===
Identifier: [id = 1]
Error: not this one
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (WORKER, "ValueError: no such room"),
        ("[STREAM_FAILED] The file is gone. SQLSTATE: XXKST\n=== Streaming Query ===\nx", "The file is gone."),
        (
            "assertion failed: There are [1] sources in the checkpoint offsets and now there are [2] sources",
            "the checkpoint is of a stream with other sources, of which a heartbeat is one",
        ),
        ("", "no reason was given"),
    ],
)
def test_a_stream_fails_in_one_line(text: str, message: str) -> None:
    assert stream_failure(text) == message
