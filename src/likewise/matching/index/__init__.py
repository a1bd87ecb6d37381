"""Indexes: how an event meets many profiles, all scored or only the candidates."""
