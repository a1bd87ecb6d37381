"""Terms in one spelling: plurals, word lists; and times as people write them."""
