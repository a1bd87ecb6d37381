"""Numbers for things: given on first sight, held as long as someone needs them, then given again."""

from __future__ import annotations

from typing import Generic, TypeVar

Key = TypeVar("Key")


class Numbers(Generic[Key]):
    """What events bring is forgotten together; what predicates hold stays until the last of them lets go.

    So neither endless readings nor subscriptions that come and go fill the memory.

    >>> numbers = Numbers[str]()
    >>> numbers.see("a"), numbers.hold("b"), numbers.see("b"), numbers.hold("b")
    (0, 1, 1, 1)
    >>> numbers.forget()
    >>> numbers.see("c"), numbers.see("d"), numbers.hold("b"), len(numbers)
    (0, 2, 1, 3)
    """

    def __init__(self) -> None:
        self.keys: list[Key | None] = []
        self._held: dict[Key, int] = {}
        self._seen: dict[Key, int] = {}
        self._stale: dict[Key, int] = {}
        self._uses: list[int] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        """One more than the highest number that is or was in use."""
        return len(self.keys)

    @property
    def held(self) -> int:
        """How many things predicates hold."""
        return len(self._held)

    def see(self, key: Key) -> int:
        """The number of what an event brings: good until `forget`."""
        number = self._seen.get(key)
        if number is None:
            number = self._held.get(key)
            number = self._seen[key] = self._new(key) if number is None else number
        return number

    def hold(self, key: Key) -> int:
        """The number of what a predicate needs: good until it is released as often."""
        number = self._held.get(key)
        if number is None:
            number = self._seen.get(key)
            number = self._held[key] = self._new(key) if number is None else number
        self._uses[number] += 1
        return number

    def release(self, number: int) -> None:
        """Let go of a number once."""
        self._uses[number] -= 1
        key = self.keys[number]
        if self._uses[number] or key is None:
            return
        del self._held[key]
        if self._seen.get(key) != number and self._stale.get(key) != number:
            self._give_back(number)

    def forget(self) -> None:
        """Drop what only events brought; those numbers are given again little by little."""
        while self._stale:
            self._reclaim()
        self._stale, self._seen = self._seen, {}

    def _new(self, key: Key) -> int:
        # Two old ones for each new one: done long before the next time, and never a pause.
        self._reclaim()
        self._reclaim()
        if self._free:
            number = self._free.pop()
            self.keys[number] = key
            return number
        self.keys.append(key)
        self._uses.append(0)
        return len(self.keys) - 1

    def _reclaim(self) -> None:
        if self._stale:
            key, number = self._stale.popitem()
            if self._held.get(key) != number and self._seen.get(key) != number:
                self._give_back(number)

    def _give_back(self, number: int) -> None:
        self.keys[number] = None
        self._free.append(number)
