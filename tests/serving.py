"""`likewise serve` in a process of its own, as a user would start it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def serve(folder: Path, *options: str, port: int = 0) -> tuple[subprocess.Popen[bytes], str]:
    """A broker that has started, on a free port unless one is given, and its address."""
    command = [sys.executable, "-m", "likewise", "serve", "--folder", str(folder), "--port", str(port), *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert process.stderr is not None
    url, seen = "", []
    for raw in process.stderr:
        line = raw.decode()
        seen.append(line)
        if line.startswith("likewise broker on "):
            url = line.split()[-1]
        if '"started"' in line:
            return process, url
    raise AssertionError("".join(seen))
