"""How to build the same matcher in any process: subscriptions, measure, spaces and options as one small value.

A recipe can be sent to any process. Spaces are sent as paths and memory-mapped, so all processes of a machine share
one copy. What a process builds from a recipe is cached.
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
from likewise.language import Composite, Options, Profile, Subscription, parse, write_header
from likewise.matching import Background, Matcher
from likewise.semantics import Competitors, Glossary, Model, Space, lists_version, measure, space_path

Interests: TypeAlias = str | Path | Subscription | Mapping[str, str] | Iterable[Subscription | str]
"""Subscriptions: as text, as the path of a file, as a dictionary of texts by name, as a list of texts, or parsed."""

Built = TypeVar("Built")

CACHE_SIZE: Final = 8
_cache: OrderedDict[Hashable, Any] = OrderedDict()


def once(key: Hashable, build: Callable[[], Built]) -> Built:
    """The cached object of this key, built on the first call in this process; the least recently used are dropped."""
    if key not in _cache:
        _cache[key] = build()
        while len(_cache) > CACHE_SIZE:
            _cache.popitem(last=False)
    _cache.move_to_end(key)
    built: Built = _cache[key]
    return built


@dataclass(frozen=True)
class Recipe:
    """How to build the same matcher in any process: the subscriptions, the measure with its spaces, and the options.

    `learned` is a background learned from the stream.
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
        """Parse the subscriptions and find the spaces on the driver, so that mistakes show at once."""
        given = tuple(sorted((key, value) for key, value in (options or {}).items() if value is not None))
        return cls(tuple(subscriptions_of(interests)), measure, tuple(space_paths(spaces)), given)

    @cached_property
    def key(self) -> str:
        """A digest that identifies the recipe in any process."""
        content = pickle.dumps((self.subscriptions, self.measure, self.spaces, self.options, self.learned))
        return hashlib.sha256(content).hexdigest()

    @cached_property
    def scoring(self) -> dict[str, str]:
        """What scores depend on besides the subscriptions: measure, model, spaces with digests, options, background."""
        spaces = {Path(path).name: space_digest(path) for path in self.spaces}
        return {
            "measure": self.measure or "",
            "spaces": ", ".join(f"{name} {digest}" for name, digest in spaces.items()),
            "options": ", ".join(f"{name}={value!r}" for name, value in self.options),
            **({"model": f"{Model.shipped().version} {lists_version()}"} if self._weighs else {}),
            **({} if self.learned is None else {"background": self.learned.version}),
        }

    @property
    def profiles(self) -> tuple[Subscription, ...]:
        """The subscriptions to single events."""
        return tuple(subscription for subscription in self.subscriptions if isinstance(subscription.body, Profile))

    @property
    def patterns(self) -> tuple[Subscription, ...]:
        """The subscriptions that are patterns."""
        return tuple(subscription for subscription in self.subscriptions if isinstance(subscription.body, Composite))

    def single_events(self) -> Recipe:
        """The same recipe without the patterns."""
        return self if not self.patterns else replace(self, subscriptions=self.profiles)

    @cached_property
    def competitors(self) -> tuple[Competitors, Competitors]:
        """The competing terms for contrast, from all subscriptions, so that every process gives the same scores."""
        return self._gathered[0]

    @property
    def may_learn(self) -> bool:
        """Whether a background may be learned: none is given, and the approach uses one."""
        options = dict(self.options)
        return "background" not in options and options.get("approach") in (None, "evidence")

    @property
    def learns(self) -> bool:
        """Whether a background would change any score."""
        return self.may_learn and self._gathered[1]

    @property
    def _weighs(self) -> bool:
        """Whether the weights of evidence decide any score."""
        usual = self.measure in (None, "evidence") and dict(self.options).get("approach") in (None, "evidence")
        predicates = (each for profile, _ in self._all_profiles() for each in profile.predicates)
        return usual and any(each.attribute_approximate or each.value_approximate for each in predicates)

    @cached_property
    def _gathered(self) -> tuple[tuple[Competitors, Competitors], bool]:
        matcher = self._empty_matcher()
        for profile, options in self._all_profiles():
            matcher.add(profile, options=options)
        return matcher.competitors, matcher.learns

    def matcher(self) -> Matcher:
        """A matcher with every subscription to single events, cached in this process."""
        return once((self.key, "matcher"), self._make_matcher)

    def bare_matcher(self) -> Matcher:
        """A new matcher without subscriptions that gives the same scores as one with all of them."""
        matcher = self._empty_matcher(competitors=self.competitors)
        if self.learned is not None:
            matcher.learn(self.learned)
        return matcher

    def check(self) -> None:
        """Build everything once, so that mistakes are raised here rather than in a worker."""
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

        known = {subscription.name: subscription for subscription in self.subscriptions}
        for subscription in self.subscriptions:
            if isinstance(subscription.body, Profile):
                yield subscription.body, subscription.options
            else:
                yield from ((leaf.profile, leaf.options) for leaf in build_plan(subscription, known).leaves)


def subscriptions_of(interests: Interests) -> Iterable[Subscription]:
    """Subscriptions from text or a file (`.lw`); parsed ones are returned unchanged."""
    if isinstance(interests, Subscription):
        return (interests,)
    if isinstance(interests, Path):
        return _read(interests)
    if isinstance(interests, str):
        return parse(interests) if "{" in interests or "\n" in interests else _read(Path(interests))
    if isinstance(interests, Mapping):
        return _named(f"{write_header(str(name))}: {text}" for name, text in interests.items())
    return _named(interests)


def _named(interests: Iterable[Subscription | str]) -> Iterable[Subscription]:
    """Parse the texts in a list that may also hold parsed subscriptions.

    >>> [subscription.name for subscription in _named(["hot: {temp > 30}", "{temp < 5}"])]
    ['hot', 's2']
    """
    items = list(interests)
    texts = "\n".join(item for item in items if isinstance(item, str))
    return [item for item in items if isinstance(item, Subscription)] + (list(parse(texts)) if texts else [])


def space_digest(path: str) -> str:
    """A short digest of a space's manifest, which holds the checksums of all its files; empty if there is no space."""
    manifest = Path(path) / "manifest.json"
    return hashlib.sha256(manifest.read_bytes()).hexdigest()[:12] if manifest.exists() else ""


def _read(path: Path) -> Iterable[Subscription]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BuildError(f"cannot read the subscriptions in {path}: {error}") from None
    return parse(text, source=str(path))


def space_paths(spaces: str | Path | Sequence[str | Path]) -> Iterable[str]:
    """The absolute paths of spaces, given by name or path."""
    for space in (spaces,) if isinstance(spaces, str | Path) else spaces:
        folder = space_path(space)
        yield str((folder if folder.is_dir() else Path(space)).resolve())
