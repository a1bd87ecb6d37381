"""The tables of the broker's database, and the migrations from older versions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    inspect,
    select,
)

from likewise.errors import BuildError

metadata = MetaData()
BigKey = BigInteger().with_variant(Integer(), "sqlite")

meta = Table("meta", metadata, Column("key", String(40), primary_key=True), Column("value", Text, nullable=False))

records = Table(
    "records",
    metadata,
    Column("position", BigKey, primary_key=True, autoincrement=False),
    Column("block", BigInteger, nullable=False),
    Column("namespace", String(64), nullable=False),
    Column("kind", Integer, nullable=False),
    Column("id", Text, nullable=False),
    Column("time", BigInteger),
    Column("received", BigInteger, nullable=False),
    Column("publisher", String(64), nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index("records_block", "block"),
    Index("records_received", "received"),
)
"""The log: everything that changes an engine, in one order. `block` is the number of the group commit."""

notifications = Table(
    "notifications",
    metadata,
    Column("cursor", BigKey, primary_key=True, autoincrement=False),
    Column("namespace", String(64), nullable=False),
    Column("subscription", Text, nullable=False),
    Column("kind", String(10), nullable=False),
    Column("score", Float, nullable=False),
    Column("time", BigInteger),
    Column("body", LargeBinary, nullable=False),
    Index("notifications_subscription", "namespace", "subscription", "cursor"),
)
"""Notifications. A replay of the log gives the same rows with the same cursors."""

subscriptions = Table(
    "subscriptions",
    metadata,
    Column("namespace", String(64), primary_key=True),
    Column("name", String(255), primary_key=True),
    Column("body", LargeBinary, nullable=False),
)

snapshots = Table(
    "snapshots",
    metadata,
    Column("block", BigKey, primary_key=True, autoincrement=False),
    Column("made", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
)

consumers = Table(
    "consumers",
    metadata,
    Column("namespace", String(64), primary_key=True),
    Column("name", String(255), primary_key=True),
    Column("cursor", BigInteger, nullable=False),
    Column("updated", BigInteger, nullable=False),
)
"""Acknowledged cursors of pull consumers, webhooks and the MQTT bridge."""

requests = Table(
    "requests",
    metadata,
    Column("namespace", String(64), primary_key=True),
    Column("key", String(255), primary_key=True),
    Column("digest", LargeBinary, nullable=False),
    Column("answer", LargeBinary, nullable=False),
    Column("made", BigInteger, nullable=False),
    Index("requests_made", "made"),
)
"""Idempotency keys, stored in one transaction with the events of their request."""

tokens = Table(
    "tokens",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("namespace", String(64), nullable=False),
    Column("name", Text, nullable=False),
    Column("roles", Text, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("previous", LargeBinary),
    Column("previous_until", BigInteger),
    Column("expires", BigInteger),
    Column("made", BigInteger, nullable=False),
    Column("revoked", Boolean, nullable=False),
)

audit = Table(
    "audit",
    metadata,
    Column("id", BigKey, primary_key=True, autoincrement=True),
    Column("time", BigInteger, nullable=False),
    Column("namespace", String(64), nullable=False),
    Column("actor", String(64), nullable=False),
    Column("action", Text, nullable=False),
    Column("target", Text, nullable=False),
)

dead_letters = Table(
    "dead_letters",
    metadata,
    Column("id", BigKey, primary_key=True, autoincrement=True),
    Column("time", BigInteger, nullable=False),
    Column("namespace", String(64), nullable=False),
    Column("source", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    sqlite_autoincrement=True,  # otherwise the id of a deleted dead letter would be reused
)

mappings = Table(
    "mappings",
    metadata,
    Column("namespace", String(64), primary_key=True),
    Column("name", String(255), primary_key=True),
    Column("body", LargeBinary, nullable=False),
)
"""Saved mappings from flat records to events."""

labels = Table(
    "labels",
    metadata,
    Column("namespace", String(64), primary_key=True),
    Column("subscription", String(255), primary_key=True),
    Column("event", String(255), primary_key=True),
    Column("relevant", Boolean, nullable=False),
    Column("actor", String(64), nullable=False),
    Column("time", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
)
"""Relevance labels that users gave to events, per subscription."""

Migration = Callable[[Connection], None]
MIGRATIONS: Final[tuple[Migration, ...]] = (metadata.create_all, lambda connection: labels.create(connection, True))
"""Step n migrates a database from version n to version n + 1."""


def migrate(connection: Connection, migrations: tuple[Migration, ...] = MIGRATIONS) -> int:
    """Migrate the database to the version of this program; returns the version it had."""
    version = 0
    if inspect(connection).has_table("meta"):
        value = connection.execute(select(meta.c.value).where(meta.c.key == "schema")).scalar()
        version = int(value or 0)
    if version > len(migrations):
        raise BuildError(
            f"the database has schema {version}, this version knows {len(migrations)}",
            hint="update Likewise, or use another folder",
        )
    for step in migrations[version:]:
        step(connection)
    connection.execute(meta.delete().where(meta.c.key == "schema"))
    connection.execute(meta.insert().values(key="schema", value=str(len(migrations))))
    return version
