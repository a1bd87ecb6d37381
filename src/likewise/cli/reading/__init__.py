"""What commands read: events, subscriptions, tables and spaces."""
