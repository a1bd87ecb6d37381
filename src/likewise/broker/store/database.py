"""The database: SQLite in write-ahead mode or PostgreSQL, one writing process, many readers."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from sqlalchemy import Connection, Engine, create_engine, event, make_url, select, text
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from likewise.broker.store.schema import meta, migrate
from likewise.errors import BuildError, MissingError

_ADVISORY: Final = 0x6C696B6577697365
"""The key of the PostgreSQL lock that one broker holds: the letters of its name."""


class Database:
    """An open database; `begin` is for the writing thread alone, `reader` for everyone else."""

    def __init__(self, url: str) -> None:
        self.engine = _engine(url)
        self.is_sqlite = self.engine.dialect.name == "sqlite"
        self._lock: BinaryIO | None = None
        self._writer: Connection | None = None
        """All is written through this one; on PostgreSQL its session holds the lock."""

    def open(self) -> None:
        """Lock it for this process and bring its schema up to date."""
        try:
            self._claim()
            with self.begin() as connection:
                migrate(connection)
        except SQLAlchemyError as error:
            self.close()
            raise _unusable(self.engine, error) from None
        except BaseException:  # whatever it was, the lock does not stay
            self.close()
            raise

    def close(self) -> None:
        """Release it."""
        if self._writer is not None:
            self._writer.close()
        if self._lock is not None:
            self._lock.close()
        self._lock = self._writer = None
        self.engine.dispose()

    @contextlib.contextmanager
    def begin(self) -> Iterator[Connection]:
        """A transaction, for the writing thread; refused when the lock is lost and cannot be had again."""
        if self._writer is None or self._writer.invalidated:
            self.reclaim()
        assert self._writer is not None
        with self._writer.begin():
            yield self._writer

    def reader(self) -> Connection:
        """A connection for reading, to be closed."""
        return self.engine.connect()

    def value(self, key: str) -> str | None:
        """An entry of the `meta` table."""
        with self.reader() as connection:
            found: str | None = connection.execute(select(meta.c.value).where(meta.c.key == key)).scalar()
            return found

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
        """Copy a running SQLite database to one file, consistent as of now."""
        if not self.is_sqlite:
            raise BuildError("a PostgreSQL database is backed up with its own tools", hint="use pg_dump")
        if target.exists():
            raise BuildError(f"{target} is already there", hint="choose another file")
        descriptor = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        os.close(descriptor)
        target.unlink()
        with self.reader() as connection:
            connection.exec_driver_sql("VACUUM INTO ?", (str(target),))
        target.chmod(0o600)

    def _claim(self) -> None:
        """Two brokers on one log would each number their own events."""
        if self.is_sqlite:
            self._claim_file()
        self.reclaim()

    def _claim_file(self) -> None:
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

    def reclaim(self) -> None:
        """Connect for writing, at the start or after the database was gone; on PostgreSQL, take the lock (again)."""
        if self._writer is not None:
            self._writer.invalidate()
            self._writer.close()
            self._writer = None
        try:
            self._writer = self._exclusive()
        except SQLAlchemyError as error:
            raise _unusable(self.engine, error) from None

    def _exclusive(self) -> Connection:
        connection = self.engine.connect()
        if self.is_sqlite:
            return connection
        with connection.begin():
            got = connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": _ADVISORY}).scalar()
        if not got:
            connection.close()
            raise BuildError("another broker is using this database", hint="stop it, or choose another database")
        return connection


def _engine(url: str) -> Engine:
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise BuildError(f"not a database URL: {url!r}", hint="postgresql://user@host/name") from None
    kind = parsed.get_backend_name()
    if kind == "postgresql":
        parsed = parsed.set(drivername="postgresql+psycopg")
        return create_engine(parsed, pool_size=8, max_overflow=24, pool_pre_ping=True)
    if kind != "sqlite":
        raise BuildError(f"a broker cannot keep its log in {kind}", hint="use SQLite or PostgreSQL")
    engine = create_engine(parsed, pool_size=8, max_overflow=56, connect_args={"check_same_thread": False})
    event.listen(engine, "connect", _prepare_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    # FULL syncs the write-ahead log at every commit: what is acknowledged survives a power cut.
    for setting in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=10000", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {setting}")
    cursor.close()


def _unusable(engine: Engine, error: SQLAlchemyError) -> MissingError:
    reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
    where = engine.url.render_as_string(hide_password=True)
    return MissingError(f"cannot use the database {where}: {reason}", hint="check that it is running and the URL")
