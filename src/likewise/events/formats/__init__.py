"""The formats of events, a module each."""
