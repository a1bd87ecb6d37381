"""The general path: operators at work, event by event, for every pattern of the language."""
