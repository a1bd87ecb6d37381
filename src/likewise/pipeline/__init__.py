"""Everything that runs on Spark: corpora to spaces, events to matches, streams to detections."""
