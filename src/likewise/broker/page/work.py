"""Long work of the page in threads of its own, so that publishers never wait behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

T = TypeVar("T")
_POOL: Final = ThreadPoolExecutor(2, thread_name_prefix="likewise-page")


async def beside(work: Callable[..., T], *arguments: Any) -> T:
    """Run something long beside the event loop."""
    return await asyncio.get_running_loop().run_in_executor(_POOL, work, *arguments)
