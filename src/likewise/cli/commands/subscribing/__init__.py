"""Commands that find events: check, match, why, detect, tune."""
