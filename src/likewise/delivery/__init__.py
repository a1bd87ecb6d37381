"""Delivery: messages in and out, kept until they are acknowledged."""

from likewise.delivery.ledger import Ledger
from likewise.delivery.mqtt import Address, Joined, Outgoing, joining, name_of
from likewise.delivery.spool import Message, Spool
from likewise.delivery.webhook import Webhook

__all__ = ["Address", "Joined", "Ledger", "Message", "Outgoing", "Spool", "Webhook", "joining", "name_of"]
