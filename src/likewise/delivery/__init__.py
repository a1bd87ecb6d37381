"""Message delivery, shared by broker and pipeline: MQTT, webhooks, a spool, and a ledger of delivered batches."""

from likewise.delivery.mqtt import Address, MqttConnection, MqttPublisher, client_name, mqtt_client
from likewise.delivery.spool import Ledger, Message, Spool
from likewise.delivery.webhook import Webhook

__all__ = [
    "Address",
    "Ledger",
    "Message",
    "MqttConnection",
    "MqttPublisher",
    "Spool",
    "Webhook",
    "client_name",
    "mqtt_client",
]
