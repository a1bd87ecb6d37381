"""Shared code of the commands that connect to a broker or a federation."""
