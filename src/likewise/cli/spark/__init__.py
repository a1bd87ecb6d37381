"""What commands on Spark share: the session, tables, and how a running stream is reported."""
