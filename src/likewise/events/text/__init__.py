"""Terms in one spelling: plurals, word lists."""
