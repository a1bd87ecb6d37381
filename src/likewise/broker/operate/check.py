"""`likewise serve --check`: check whether a broker with these settings would start."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from sqlalchemy import text

from likewise.broker.engines.spaces import EngineFactory
from likewise.broker.settings import BrokerSettings
from likewise.broker.store.database import Database
from likewise.broker.store.schema import MIGRATIONS


def check_broker(settings: BrokerSettings) -> Iterator[tuple[str, str]]:
    """Yield each part with its state; raises the first error that would prevent the start."""
    settings.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    free = shutil.disk_usage(settings.folder).free
    yield "folder", f"{settings.folder}, {free / 1e9:.1f} GB free"
    database = Database(settings.url)
    database.open()
    try:
        with database.reader() as connection:
            connection.execute(text("SELECT 1")).scalar()
        yield "database", f"{database.engine.dialect.name}, schema {len(MIGRATIONS)}, {database.size() / 1e6:.1f} MB"
    finally:
        database.close()
    factory = EngineFactory(settings)
    factory.open()
    spaces = ", ".join(f"{space['name']} ({space['terms']:,} terms)" for space in factory.describe())
    yield "spaces", spaces or "none installed: `~` uses WordNet and the sentence encoder"
    factory.make(lambda _: None).subscribe("check: {type~ = check~}")
    yield "engine", "ok"
    yield "tokens", "off (--open)" if settings.open else "on"
    yield "TLS", "on" if settings.certificate else "off"
