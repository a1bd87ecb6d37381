"""Delivery: messages in and out, kept until they are acknowledged."""
