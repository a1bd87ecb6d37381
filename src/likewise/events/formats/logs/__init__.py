"""Lines of log files."""
