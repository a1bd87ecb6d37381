"""Text to subscriptions, patterns and events."""
