"""How to build the same engine anywhere: subscriptions, measure, spaces and options as one small value.

A recipe can be sent to any process. Spaces travel as paths and are memory-mapped there, so all processes of a machine
share one copy. What a process builds from a recipe is kept as long as the process lives.
"""

from __future__ import annotations

import hashlib
import pickle
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from likewise.errors import BuildError
from likewise.language import Composite, Options, Profile, Subscription, parse
from likewise.matching import Background, Matcher
from likewise.semantics import Competitors, Glossary, Space, measure, space_path

Interests: TypeAlias = str | Path | Subscription | Mapping[str, str] | Iterable[Subscription | str]
"""Subscriptions: as text, as the path of a file, as texts by name, as a list of texts, or ready."""

Made = TypeVar("Made")

KEPT: Final = 8
_made: OrderedDict[Hashable, Any] = OrderedDict()


def once(key: Hashable, make: Callable[[], Made]) -> Made:
    """The thing of this key, made at the first call in this process; the least used are dropped."""
    if key not in _made:
        _made[key] = make()
        while len(_made) > KEPT:
            _made.popitem(last=False)
    _made.move_to_end(key)
    made: Made = _made[key]
    return made


@dataclass(frozen=True)
class Recipe:
    """How to make the same matcher anywhere: the subscriptions, the measure with its spaces, and the options.

    `learned` is a background that nobody gave: it yields where profiles are so many that they are indexed.
    """

    subscriptions: tuple[Subscription, ...]
    measure: str | None = None
    spaces: tuple[str, ...] = ()
    options: tuple[tuple[str, Any], ...] = field(default=())
    learned: Background | None = None

    @classmethod
    def of(
        cls,
        interests: Interests,
        *,
        measure: str | None = None,
        spaces: str | Path | Sequence[str | Path] = (),
        options: Mapping[str, Any] | None = None,
    ) -> Recipe:
        """Read the subscriptions and find the spaces, here on the driver, so that mistakes show at once."""
        given = tuple(sorted((key, value) for key, value in (options or {}).items() if value is not None))
        return cls(tuple(subscriptions_of(interests)), measure, tuple(space_paths(spaces)), given)

    @cached_property
    def key(self) -> str:
        """Tells recipes apart, in any process."""
        content = pickle.dumps((self.subscriptions, self.measure, self.spaces, self.options, self.learned))
        return hashlib.sha256(content).hexdigest()

    @cached_property
    def scoring(self) -> dict[str, str]:
        """What scores depend on beside the subscriptions: measure, spaces by their manifests, options, background."""
        spaces = {Path(path).name: space_digest(path) for path in self.spaces}
        return {
            "measure": self.measure or "",
            "spaces": ", ".join(f"{name} {digest}" for name, digest in spaces.items()),
            "options": ", ".join(f"{name}={value!r}" for name, value in self.options),
            **({} if self.learned is None else {"background": self.learned.version}),
        }

    @property
    def profiles(self) -> tuple[Subscription, ...]:
        """The subscriptions to single events."""
        return tuple(each for each in self.subscriptions if isinstance(each.body, Profile))

    @property
    def patterns(self) -> tuple[Subscription, ...]:
        """The composite ones."""
        return tuple(each for each in self.subscriptions if isinstance(each.body, Composite))

    def single_events(self) -> Recipe:
        """Without the patterns."""
        return self if not self.patterns else replace(self, subscriptions=self.profiles)

    @cached_property
    def competitors(self) -> tuple[Competitors, Competitors]:
        """The terms that compete under contrast, those of all subscriptions, so that every process scores alike."""
        return self._gathered[0]

    @property
    def may_learn(self) -> bool:
        """Whether a background is neither given nor ruled out by the approach."""
        options = dict(self.options)
        return "background" not in options and options.get("approach") in (None, "evidence")

    @property
    def learns(self) -> bool:
        """Whether a background would change any score."""
        return self.may_learn and self._gathered[1]

    @cached_property
    def _gathered(self) -> tuple[tuple[Competitors, Competitors], bool]:
        every = self._empty_matcher()
        for profile, options in self._all_profiles():
            every.add(profile, options=options)
        return every.competitors, every.learns

    def matcher(self) -> Matcher:
        """A matcher with every subscription to single events; made once in a process."""
        return once((self.key, "matcher"), self._make_matcher)

    def bare_matcher(self) -> Matcher:
        """A new matcher without any subscription, that scores as if it had all."""
        matcher = self._empty_matcher(competitors=self.competitors)
        if self.learned is not None:
            matcher.learn(self.learned, yielding=True)
        return matcher

    def check(self) -> None:
        """Build everything once, so that a mistake shows where it was made."""
        _ = self._gathered

    def _make_matcher(self) -> Matcher:
        matcher = self.bare_matcher()
        for subscription in self.profiles:
            assert isinstance(subscription.body, Profile)
            matcher.add(subscription.body, options=subscription.options, key=subscription.name)
        return matcher

    def _empty_matcher(self, **more: Any) -> Matcher:
        spaces = [once(("space", path), partial(Space.open, path)) for path in self.spaces]
        options: dict[str, Any] = {**more, **dict(self.options), "spaces": spaces}
        text = options.pop("glossary", None)
        name = self.measure or ("evidence" if text else None)
        if name is not None:
            words: dict[str, Any] = {"glossary": Glossary.from_text(text)} if text else {}
            options["measure"] = once((name, self.spaces, text), lambda: measure(name, spaces=spaces, **words))
        return Matcher(**options)

    def _all_profiles(self) -> Iterable[tuple[Profile, Options]]:
        from likewise.composite import build_plan

        known = {each.name: each for each in self.subscriptions}
        for subscription in self.subscriptions:
            if isinstance(subscription.body, Profile):
                yield subscription.body, subscription.options
            else:
                yield from ((leaf.profile, leaf.options) for leaf in build_plan(subscription, known).leaves)


def subscriptions_of(interests: Interests) -> Iterable[Subscription]:
    """Subscriptions from text, from a file (`.lw`), or as they are."""
    if isinstance(interests, Subscription):
        return (interests,)
    if isinstance(interests, Path):
        return _read(interests)
    if isinstance(interests, str):
        return parse(interests) if "{" in interests or "\n" in interests else _read(Path(interests))
    if isinstance(interests, Mapping):
        return _named(f"{name}: {text}" for name, text in interests.items())
    return _named(interests)


def _named(interests: Iterable[Subscription | str]) -> Iterable[Subscription]:
    """Subscriptions as they are, and those of the texts among them.

    >>> [each.name for each in _named(["hot: {temp > 30}", "{temp < 5}"])]
    ['hot', 's2']
    """
    listed = list(interests)
    texts = "\n".join(each for each in listed if isinstance(each, str))
    return [each for each in listed if isinstance(each, Subscription)] + (list(parse(texts)) if texts else [])


def space_digest(path: str) -> str:
    """A short digest of a space's manifest, which has the checksums of all its files; empty if there is no space."""
    manifest = Path(path) / "manifest.json"
    return hashlib.sha256(manifest.read_bytes()).hexdigest()[:12] if manifest.exists() else ""


def _read(path: Path) -> Iterable[Subscription]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BuildError(f"the subscriptions {path} cannot be read: {error}") from None
    return parse(text, source=str(path))


def space_paths(spaces: str | Path | Sequence[str | Path]) -> Iterable[str]:
    for space in (spaces,) if isinstance(spaces, str | Path) else spaces:
        folder = space_path(space)
        yield str((folder if folder.is_dir() else Path(space)).resolve())
