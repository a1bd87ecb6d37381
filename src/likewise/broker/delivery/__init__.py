"""How notifications leave the broker: streams, signed webhooks, and MQTT."""
