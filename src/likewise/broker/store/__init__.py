"""What the broker keeps: the log, its tables, what they hold, reading back, and upkeep."""
