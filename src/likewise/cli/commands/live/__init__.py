"""Commands of the broker and of the federation."""
