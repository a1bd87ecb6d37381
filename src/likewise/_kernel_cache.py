"""Where compiled kernels are kept between runs.

Numba keeps them beside the source, or else in the user's cache, and refuses to load at all where it can write to
neither, as in a container with a read-only disk. There they go to a folder of this user below the temporary one.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

_VARIABLE = "NUMBA_CACHE_DIR"


def keep_kernels(package: Path) -> None:
    """Name a folder for Numba, if it would find none itself; it must not be loaded yet."""
    if os.name != "posix" or _VARIABLE in os.environ or _writable(package) or _writable(_user_cache()):
        return
    folder = Path(tempfile.gettempdir()) / f"likewise-kernels-{os.getuid()}"
    if _is_ours(folder):
        os.environ[_VARIABLE] = str(folder)


def _writable(folder: Path) -> bool:
    """Whether one can write there, or make it."""
    there = next((one for one in (folder, *folder.parents) if one.exists()), None)
    return there is not None and there.is_dir() and os.access(there, os.W_OK)


def _user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))


def _is_ours(folder: Path) -> bool:
    """Cached code is run, so nobody else may be able to put some there."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        told = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(told.st_mode) and told.st_uid == os.getuid() and not told.st_mode & 0o022
