"""The compiled path: simple sequences, conjunctions and absences by key, a whole batch per call."""
