"""Packs each Arrow batch of a worker into one cell, so that results reach the driver without an object per row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

PACKED = pa.schema([("packed", pa.binary())])


def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One row with an Arrow message for each batch.

    >>> batch = pa.record_batch({"n": [1, 2]})
    >>> [row] = pack([batch])
    >>> pa.ipc.open_stream(row.column("packed")[0].as_py()).read_all().to_pydict()
    {'n': [1, 2]}
    """
    for batch in batches:
        if batch.num_rows:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as stream:
                stream.write_batch(batch)
            yield pa.record_batch([pa.array([sink.getvalue().to_pybytes()], pa.binary())], schema=PACKED)
