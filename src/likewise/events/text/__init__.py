"""Normal forms of terms, plurals, word lists, and local time formats."""
