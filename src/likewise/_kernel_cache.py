"""Where compiled kernels are kept between runs.

Numba checks only whether the file of a function changed. Our kernels call functions and use types of other files, so
after an update old machine code could run. Kernels therefore go to a folder named by a hash of every source file that
takes part in compiling. Where neither the package nor the user's cache can be written to, as in a container with a
read-only disk, the folder is below the temporary one.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

_VARIABLE = "NUMBA_CACHE_DIR"
_PREFIX = "likewise-kernels-"
_KEPT = 3
"""Folders of earlier versions that stay, newest first."""


def keep_kernels(package: Path) -> None:
    """Name the folder for Numba; a folder that the user names stays the parent of ours."""
    if os.name != "posix":
        return
    base = _base(package)
    if base is None:
        return
    folder = base / f"{_PREFIX}{fingerprint(package)}"
    if not folder.exists():
        _prune(base)
    os.environ[_VARIABLE] = str(folder)
    if "numba" in sys.modules:
        sys.modules["numba"].config.CACHE_DIR = str(folder)


def are_kept() -> bool:
    """Whether kernels of these sources were compiled before; if not, the first use takes its time."""
    return Path(os.environ.get(_VARIABLE, "")).is_dir()


def fingerprint(package: Path) -> str:
    """A hash of the sources that are compiled or called from compiled code."""
    seen = hashlib.sha256(sys.version.encode())
    for path in sorted(package.rglob("*.py")):
        source = path.read_bytes()
        if b"njit" in source:
            seen.update(source)
    return seen.hexdigest()[:16]


def _base(package: Path) -> Path | None:
    named = os.environ.get(_VARIABLE)
    if named:
        # A parent process has been here already: its folder stands beside ours.
        path = Path(named)
        return path.parent if path.name.startswith(_PREFIX) else path
    for folder in (package / "__pycache__", _user_cache() / "likewise"):
        if _writable(folder):
            return folder
    shared = Path(tempfile.gettempdir()) / f"likewise-{os.getuid()}"
    return shared if _is_ours(shared) else None


def _prune(base: Path) -> None:
    """Earlier versions leave folders behind; the last few stay, so that switching branches does not compile again."""
    with suppress(OSError):
        known = sorted(base.glob(f"{_PREFIX}*"), key=lambda folder: folder.stat().st_mtime, reverse=True)
        for folder in known[_KEPT:]:
            shutil.rmtree(folder, ignore_errors=True)


def _writable(folder: Path) -> bool:
    """Whether one can write there, or make it."""
    there = next((parent for parent in (folder, *folder.parents) if parent.exists()), None)
    return there is not None and there.is_dir() and os.access(there, os.W_OK)


def _user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))


def _is_ours(folder: Path) -> bool:
    """Cached code is run, so nobody else may be able to put some there."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022
