"""Delivery of notifications to streams, signed webhooks and MQTT, and of events to a federation."""
