"""The database: SQLite in write-ahead mode or PostgreSQL, with one writing process and many readers."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from sqlalchemy import Connection, Engine, create_engine, event, make_url, select, text
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from likewise.broker.store.schema import meta, migrate
from likewise.errors import BuildError, MissingError

_ADVISORY: Final = 0x6C696B6577697365
"""Key of the PostgreSQL advisory lock that the broker holds: "likewise" in ASCII."""


class Database:
    """A database; only the writing thread may call `begin`, all other threads use `reader`."""

    def __init__(self, url: str) -> None:
        self.engine = _engine(url)
        self.is_sqlite = self.engine.dialect.name == "sqlite"
        self._lock: BinaryIO | None = None
        self._writer: Connection | None = None
        """The only connection that writes; on PostgreSQL its session holds the lock."""

    def open(self) -> None:
        """Lock the database for this process and migrate its schema."""
        try:
            self._lock_database()
            with self.begin() as connection:
                migrate(connection)
        except SQLAlchemyError as error:
            self.close()
            raise _unusable(self.engine, error) from None
        except BaseException:  # release the lock, whatever the error
            self.close()
            raise

    def close(self) -> None:
        """Close all connections and release the lock."""
        if self._writer is not None:
            self._writer.close()
        if self._lock is not None:
            self._lock.close()
        self._lock = self._writer = None
        self.engine.dispose()

    @contextlib.contextmanager
    def begin(self) -> Iterator[Connection]:
        """A transaction, for the writing thread; raises if the lock was lost and cannot be taken again."""
        if self._writer is None or self._writer.invalidated:
            self.reconnect()
        assert self._writer is not None
        with self._writer.begin():
            yield self._writer

    def reader(self) -> Connection:
        """A connection for reading; the caller closes it."""
        return self.engine.connect()

    def value(self, key: str) -> str | None:
        """The value of a key in the `meta` table."""
        with self.reader() as connection:
            value: str | None = connection.execute(select(meta.c.value).where(meta.c.key == key)).scalar()
            return value

    def size(self) -> int:
        """Bytes in use."""
        with self.reader() as connection:
            if not self.is_sqlite:
                return int(connection.execute(text("SELECT pg_database_size(current_database())")).scalar() or 0)
            pages, free, size = (
                int(connection.execute(text(f"PRAGMA {name}")).scalar() or 0)
                for name in ("page_count", "freelist_count", "page_size")
            )
            return (pages - free) * size

    def backup(self, target: Path) -> None:
        """Copy a running SQLite database to one consistent file."""
        if not self.is_sqlite:
            raise BuildError("the broker cannot back up a PostgreSQL database", hint="use pg_dump")
        if target.exists():
            raise BuildError(f"{target} already exists", hint="choose another file")
        descriptor = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        os.close(descriptor)
        target.unlink()
        with self.reader() as connection:
            connection.exec_driver_sql("VACUUM INTO ?", (str(target),))
        target.chmod(0o600)

    def _lock_database(self) -> None:
        """Take the lock: two brokers on one log would use the same positions."""
        if self.is_sqlite:
            self._lock_file()
        self.reconnect()

    def _lock_file(self) -> None:
        path = Path(str(self.engine.url.database))
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = path.with_suffix(".lock").open("ab")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise BuildError(
                f"another broker is using {path}", hint="stop it, or choose another folder with --folder"
            ) from None
        self._lock = lock

    def reconnect(self) -> None:
        """Open the writing connection, at the start or after it was lost; on PostgreSQL, also take the lock."""
        if self._writer is not None:
            self._writer.invalidate()
            self._writer.close()
            self._writer = None
        try:
            self._writer = self._connect_exclusively()
        except SQLAlchemyError as error:
            raise _unusable(self.engine, error) from None

    def _connect_exclusively(self) -> Connection:
        connection = self.engine.connect()
        if self.is_sqlite:
            return connection
        deadline = time.monotonic() + _LOCK_PATIENCE
        while not _locked(connection):
            if time.monotonic() > deadline:
                connection.close()
                raise BuildError("another broker is using this database", hint="stop it, or choose another database")
            time.sleep(0.1)
        return connection


_LOCK_PATIENCE: Final = 5.0
"""Seconds: the server releases the lock of a broker that has just ended a moment after its connection is closed."""


def _locked(connection: Connection) -> bool:
    with connection.begin():
        found = connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": _ADVISORY}).scalar()
    return bool(found)


def _engine(url: str) -> Engine:
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise BuildError(
            f"not a database URL: {url!r}", hint="write, for example, postgresql://user@host/name"
        ) from None
    kind = parsed.get_backend_name()
    if kind == "postgresql":
        parsed = parsed.set(drivername="postgresql+psycopg")
        return create_engine(parsed, pool_size=8, max_overflow=24, pool_pre_ping=True)
    if kind != "sqlite":
        raise BuildError(f"a broker cannot store its log in {kind}", hint="use SQLite or PostgreSQL")
    engine = create_engine(parsed, pool_size=8, max_overflow=56, connect_args={"check_same_thread": False})
    event.listen(engine, "connect", _prepare_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    # FULL syncs the write-ahead log at every commit, so acknowledged events survive a power cut.
    for setting in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=10000", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {setting}")
    cursor.close()


def _unusable(engine: Engine, error: SQLAlchemyError) -> MissingError:
    reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
    where = engine.url.render_as_string(hide_password=True)
    return MissingError(
        f"cannot use the database {where}: {reason}", hint="check the URL, and that the database is running"
    )
