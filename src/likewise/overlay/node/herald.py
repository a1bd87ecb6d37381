"""How a topic that someone wants becomes known to every node, and how one can be sure of it.

A node is told with a stretch of the ring to pass the news on to: it divides the stretch among the nodes that it knows
there. Everyone knows the next node on the ring, so nobody is left out. A node answers when those it told have
answered. So a subscription is confirmed when every entry node sends on what it wants.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from likewise.overlay.cube.items import Id, id_of
from likewise.overlay.node import wire as w
from likewise.overlay.node.catalogue import TopicCatalogue
from likewise.overlay.ring.ids import SPAN, Key, number_of
from likewise.overlay.ring.members import Ring
from likewise.overlay.ring.tables import Peer

TRIES: Final = 60
"""How often a node that lives is told before one gives it up; it will compare catalogues with its neighbours."""
REMEMBER: Final = 10_000
DOUBT: Final = 2_000_000
"""Microseconds after which a node begins when no neighbour knows more, although there may be nodes beyond them."""


@dataclass(slots=True)
class Told:
    """A node that was told, and up to where it passes on; this node itself while it does not know whom to tell."""

    peer: Peer
    limit: Key
    since: int
    tries: int = 0


@dataclass(slots=True)
class News:
    """Entries on their way: who told this node, and whom it told."""

    entries: tuple[w.Listed, ...]
    origin: tuple[Peer, int] | None = None
    waiting: list[Id] = field(default_factory=list)
    told: dict[int, Told] = field(default_factory=dict)


class TopicHerald:
    """One node's part in making topics known."""

    def __init__(self, ring: Ring, catalogue: TopicCatalogue, *, retry: int) -> None:
        self.ring = ring
        self.catalogue = catalogue
        self.retry = retry
        self.informed = True
        self._doubts = 0
        self._unsure: set[Key] = set()
        self.complete: list[Id] = []
        self._numbers = 0
        self._news: dict[int, News] = {}
        self._of_topic: dict[Key, News] = {}
        self._had: dict[tuple[Key, int], bool] = {}

    # telling

    def spread(self, now: int, entry: w.Listed, *, wait: bool, again: bool = False) -> list[Id]:
        """Make an entry known to all if it is new; gives what is complete once all know it."""
        key = entry.topic.key
        news = self._of_topic.get(key)
        if self.catalogue.merge([entry]) or (again and news is None):
            self.ring.digest = self.catalogue.digest
            news = self._of_topic[key] = News((self.catalogue.entries[key],))
            self._share(now, news, self.ring.me.id, self.ring.me.id)
        if news is None or not news.told or not wait:
            self._finish_if_done(news)
            return []
        self._numbers += 1
        mark = id_of("known", self.ring.me.id, str(self._numbers))
        news.waiting.append(mark)
        return [mark]

    def _share(self, now: int, news: News, after: Key, limit: Key) -> None:
        """Divide a stretch of the ring among those who are known there."""
        if self.catalogue.common:
            return
        if not self.ring.placed:
            self._tell(news, Told(self.ring.me, limit, now))
            return
        peers = list(self._between(after, limit))
        for peer, end in zip(peers, [*(each.id for each in peers[1:]), limit], strict=False):
            self._tell(news, Told(peer, end, now))

    def _tell(self, news: News, told: Told) -> None:
        self._numbers += 1
        news.told[self._numbers] = told
        self._news[self._numbers] = news
        if told.peer.id != self.ring.me.id:
            self.ring.sends.append((told.peer, w.Topics(news.entries, told.limit, self._numbers)))

    def _between(self, after: Key, limit: Key) -> Iterator[Peer]:
        start = number_of(after)
        length = (number_of(limit) - start) % SPAN or SPAN
        known = {peer.id: peer for peer in (*self.ring.leaves, *self.ring.table.entries.values())}
        ordered = sorted(((peer.number - start) % SPAN, peer.id) for peer in known.values())
        return (known[each] for ahead, each in ordered if 0 < ahead < length)

    def _finish_if_done(self, news: News | None) -> None:
        if news is None or news.told:
            return
        for entry in news.entries:
            if self._of_topic.get(entry.topic.key) is news:
                del self._of_topic[entry.topic.key]
        self.complete += news.waiting
        if news.origin is not None:
            peer, number = news.origin
            self._had[peer.id, number] = True
            self.ring.sends.append((peer, w.TopicsKnown(number)))

    def _divide(self, now: int) -> None:
        """Divide the stretch of a dead node among others, and what waits for this node to find its place."""
        if not self.ring.placed:
            return
        for number, news in list(self._news.items()):
            told = news.told[number]
            if told.peer.id == self.ring.me.id or self.ring.is_dead(told.peer.id):
                self._share(now, news, told.peer.id, told.limit)
                self._done(number)

    # hearing

    def topics_came(self, now: int, sender: Peer, message: w.Topics) -> None:
        """News, or the answer to a comparison."""
        new = self.catalogue.merge(message.entries)
        self.ring.digest = self.catalogue.digest
        if message.number:
            self._pass_on(now, sender, message)
        elif new:
            # What a comparison brought was missed by others too.
            for peer in self.ring.leaves.beside(1):
                if peer.id != sender.id:
                    self.ring.sends.append((peer, w.Topics(tuple(new))))
        if message.answer and not self.informed:
            self._learn(now, sender, sure=message.sure)

    def _pass_on(self, now: int, sender: Peer, message: w.Topics) -> None:
        at = (sender.id, message.number)
        done = self._had.get(at)
        if done:
            self.ring.sends.append((sender, w.TopicsKnown(message.number)))
        if done is not None:
            return
        self._had[at] = False
        if len(self._had) > REMEMBER:
            del self._had[next(iter(self._had))]
        news = News(message.entries, (sender, message.number))
        self._share(now, news, self.ring.me.id, message.limit)
        self._finish_if_done(news)

    def known_came(self, sender: Peer, message: w.TopicsKnown) -> None:
        """Everyone in a stretch knows."""
        news = self._news.get(message.number)
        if news is not None and news.told[message.number].peer.id == sender.id:
            self._done(message.number)

    def _done(self, number: int) -> None:
        news = self._news.pop(number)
        del news.told[number]
        self._finish_if_done(news)

    # comparing

    def doubt(self, now: int) -> None:
        """This node is new, or slept: what others want, it may not know."""
        if self.informed:
            self.informed, self._doubts = False, now
        self._unsure.clear()

    @property
    def _before(self) -> Peer | None:
        """The node before this one on the ring: whoever tells this one has told it."""
        leaves = self.ring.leaves
        return leaves.left[0] if leaves.left else leaves.right[-1] if leaves.right else None

    def neighbours_changed(self, now: int) -> None:
        """Others are before this node and after it now."""
        self._divide(now)
        if not self.informed:
            self.compare(now)

    def compare(self, now: int) -> None:
        """Ask neighbours whose catalogue differs, or all of them if this node may have missed something."""
        if not self.informed:
            self._begin_if_alone(now)
        if self.informed:
            mine = self.catalogue.digest
            asked = [peer for peer in self.ring.leaves.beside(2) if self.ring.digests.get(peer.id, mine) != mine]
        else:
            asked = list(self.ring.leaves)
        question = w.AskTopics(tuple(self.catalogue.buckets))
        self.ring.sends += [(peer, question) for peer in asked]

    def ask_came(self, sender: Peer, message: w.AskTopics) -> None:
        """A neighbour compares."""
        missing = self.catalogue.differing(message.buckets)
        self.ring.sends.append((sender, w.Topics(missing, answer=True, sure=self.informed)))

    def _learn(self, now: int, sender: Peer, *, sure: bool) -> None:
        """A neighbour has said what it knows: that is all if it is sure, and the node before this one."""
        if not self.ring.placed:
            return
        if not sure:
            self._unsure.add(sender.id)
            self._begin_if_alone(now)
        else:
            self._unsure.discard(sender.id)
            before = self._before
            self.informed = before is None or sender.id == before.id

    def _begin_if_alone(self, now: int) -> None:
        """Where nobody is sure, as after all have slept or the first node is gone, someone must begin."""
        if not self.ring.placed or any(peer.id not in self._unsure for peer in self.ring.leaves):
            return
        if self.ring.knows_all or self._doubts + DOUBT <= now:
            self.informed = True

    @property
    def is_restless(self) -> bool:
        """Whether there are chores: an answer is awaited, or neighbours change."""
        return self.ring.settings.maintain or bool(self._news) or not self.informed

    def chores(self, now: int) -> None:
        """Tell again who has not answered."""
        self._divide(now)
        for number, news in list(self._news.items()):
            told = news.told[number]
            if told.since + self.retry > now or told.peer.id == self.ring.me.id:
                continue
            told.since, told.tries = now, told.tries + 1
            if told.tries > TRIES:
                self._done(number)
            else:
                self.ring.sends.append((told.peer, w.Topics(news.entries, told.limit, number)))
        self.compare(now)
        self.ring.digest = self.catalogue.digest
