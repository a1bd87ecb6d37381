"""The ledger: the number of the last batch whose messages were all delivered."""

from __future__ import annotations

from pathlib import Path


class Ledger:
    """Stores the last delivered batch in a file; batches must come in order.

    >>> import tempfile
    >>> ledger = Ledger(Path(tempfile.mkdtemp()) / "delivered")
    >>> ledger.add(3)
    >>> ledger.has(2), ledger.has(3), ledger.has(4)
    (True, True, False)
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)

    def has(self, batch: int) -> bool:
        """Whether this batch was delivered already."""
        try:
            return batch <= int(self._path.read_text())
        except (FileNotFoundError, ValueError):
            return False

    def add(self, batch: int) -> None:
        """Record a batch. The file is replaced atomically: after a crash it holds the old number or the new one."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        part = self._path.with_suffix(".part")
        part.write_text(str(batch))
        part.replace(self._path)
