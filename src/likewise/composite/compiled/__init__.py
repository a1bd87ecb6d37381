"""The compiled path: plain sequences, conjunctions and absences by key, whole batches in one call."""
