"""Python clients of a broker, and the requests they send."""

from likewise.broker.client import calls
from likewise.broker.client.clients import Arrival, AsyncBrokerClient, BrokerClient, Operations

__all__ = ["Arrival", "AsyncBrokerClient", "BrokerClient", "Operations", "calls"]
