"""Storage: the database and its schema, the log, queries, snapshots and retention."""
