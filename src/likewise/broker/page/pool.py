"""A separate thread pool for slow work of the page, so that it never delays publishers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

T = TypeVar("T")
_POOL: Final = ThreadPoolExecutor(2, thread_name_prefix="likewise-page")


async def run_in_pool(work: Callable[..., T], *arguments: Any) -> T:
    """Run a slow function in the thread pool of the page."""
    return await asyncio.get_running_loop().run_in_executor(_POOL, work, *arguments)
