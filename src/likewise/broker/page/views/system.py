"""System: health, state of patterns, dead letters, versions and tokens."""

from __future__ import annotations

from typing import Any, Final

from nicegui import ui

import likewise
from likewise.broker.auth import ANY, ROLES
from likewise.broker.page.frame import button, card, heading, labelled, notify, on_value, tag, text
from likewise.broker.page.phrases import ago, counted, shortened, time_of_day
from likewise.broker.page.session import Visitor
from likewise.broker.page.watch import StreamWatch
from likewise.broker.store import schema
from likewise.broker.store.records import now
from likewise.broker.store.schema import MIGRATIONS
from likewise.errors import BuildError

_TICK: Final = 3.0
_LETTERS: Final = 50


class SystemView:
    """The view of one administrator."""

    def __init__(self, visitor: Visitor, watch: StreamWatch) -> None:
        self._visitor, self._watch, self._broker = visitor, watch, visitor.broker
        self._token_name, self._token_roles = "", {"subscribe"}

    def build(self) -> None:
        """Create all parts of the view."""
        heading("System", "Health, the state of patterns, dead letters and tokens.")
        self._facts = tag("div", "facts")
        with tag("div", "two"):
            with tag("div"):
                with card("State of patterns", label="Patterns"):
                    self._patterns = tag("div", "scroll", 'tabindex="0" role="region" aria-label="State of patterns"')
                with card("Spaces and versions", label="Versions"):
                    self._versions()
            with tag("div"):
                with card("Dead letters"):
                    self._letters = tag("div")
                    self._shown: list[int] | None = None
                with card("Tokens"):
                    self._tokens = tag("div")

    def _versions(self) -> None:
        broker = self._broker
        text(f"Likewise {likewise.__version__}, database schema {len(MIGRATIONS)}", tag="p")
        spaces = broker.engine_factory.describe()
        for space in spaces:
            text(f"{space['name']}: {space['terms']:,} words from {space['concepts']:,} texts", tag="p")
        if not spaces:
            text(
                "No space: words are compared with WordNet and the sentence encoder, if installed.",
                "hint",
                tag="p",
            )
        late = broker.settings.lateness
        waits = f"wait {_seconds(late)} for" if late else "do not wait for"
        text(f"Patterns {waits} late events.", tag="p")
        keep = broker.settings.retention.age
        text(
            "The log keeps events forever." if keep is None else f"The log keeps events for {keep / 86_400:g} days.",
            tag="p",
        )

    async def show(self) -> None:
        """Show everything."""
        await self.refresh()
        self._show_tokens()

    async def refresh(self) -> None:
        """Update everything that changes without the user."""
        access = self._visitor.access("admin")
        broker = self._broker
        tenant = broker.host.tenants.get(access.namespace)
        bad = [f"{name}: {state}" for name, state in broker.checks().items() if state != "ok"]
        lag = 0 if tenant is None else max(0, tenant.lag)
        held = await broker.read(broker.instances)
        self._facts.clear()
        with self._facts:
            _fact("State", "everything works" if not bad else "; ".join(bad), bad=bool(bad))
            behind = broker.host.backlog
            _fact("Waiting to be matched", "nothing" if behind == 0 else counted(behind, "event"), bad=behind > 1000)
            _fact("Delay of the last event", _seconds(lag))
            _fact("Partial instances of patterns", "none" if not held else f"{held:,}")
            _fact("Open streams", counted(broker.hub.streams, "stream"))
            _fact("In the log", counted(broker.log.position, "record"))
        await self._show_patterns(access.namespace)
        await self._show_letters()

    async def _show_patterns(self, namespace: str) -> None:
        states = await self._broker.read(self._states, namespace)
        self._patterns.clear()
        with self._patterns:
            if not states:
                text("There are no patterns. The playground has an example: “Two in a row”.", "hint", tag="p")
                return
            with tag("table", "list"):
                _cells("th", "pattern", "partial instances", "detections", "progress")
                for state in states:
                    _cells("td", state.name, f"{state.held:,}", f"{state.detected:,}", shortened(state.furthest, 140))

    def _states(self, namespace: str) -> list[Any]:
        host = self._broker.host
        with host.lock:
            tenant = host.tenants.get(namespace)
            return list(tenant.engine.detector.state()) if tenant is not None and tenant.engine.has_patterns else []

    # dead letters

    async def _show_letters(self) -> None:
        access = self._visitor.access("admin")
        rows = await self._broker.read(
            lambda: self._broker.history.table(schema.dead_letters, access.namespace, limit=_LETTERS)
        )
        ids = [row["id"] for row in rows]
        if ids == self._shown:
            return  # do not replace a button that the user is about to press
        self._shown = ids
        self._letters.clear()
        with self._letters:
            if not rows:
                text(
                    "None. Events and notifications that cannot be used or delivered are listed here with the reason.",
                    "hint",
                    tag="p",
                )
            for row in rows:
                self._letter(row)

    def _letter(self, row: dict[str, Any]) -> None:
        with tag("div", "result"):
            text(shortened(row["reason"], 240))
            text(f"{shortened(row['source'], 60)} · {ago((now() - row['time']) / 1e6)}", "small hint")
            text(shortened(bytes(row["body"]).decode("utf-8", "replace"), 160), "mono small")
            with tag("div", "row"):
                labelled(
                    button("Retry", lambda: self._retry(row["id"]), "act second"), f"Retry dead letter {row['id']}"
                )
                labelled(
                    button("Delete", lambda: self._delete(row["id"]), "act danger"), f"Delete dead letter {row['id']}"
                )

    async def _retry(self, id: int) -> None:
        await self._broker.retry_dead_letter(self._visitor.access("admin"), id)
        notify("The dead letter was sent again.")
        await self._show_letters()

    async def _delete(self, id: int) -> None:
        await self._broker.delete_dead_letter(self._visitor.access("admin"), id)
        await self._show_letters()

    # tokens

    def _show_tokens(self) -> None:
        access = self._visitor.access("admin")
        self._tokens.clear()
        with self._tokens:
            if self._broker.settings.open:
                text("This broker runs without tokens, on this machine only.", "hint", tag="p")
                return
            for token in self._broker.keyring.list(access.scope):
                with tag("div", "result row between"):
                    with tag("div"):
                        text(token.name)
                        where = "all namespaces" if token.namespace == ANY else f"namespace {token.namespace}"
                        roles = ", ".join(sorted(token.roles))
                        state = " · revoked" if token.revoked else ""
                        text(f"{roles} · {where} · created {time_of_day(token.made)}{state}", "small hint")
                    if not token.revoked and token.id != access.actor:
                        revoke = button("Revoke", lambda token=token: self._revoke(token.id), "act danger")
                        labelled(revoke, f"Revoke {token.name}")
            self._new_token()

    def _new_token(self) -> None:
        with tag("div", "row").style("margin-top: .75rem"):
            with tag("label", "field"):
                text("Name of the token", tag="span")
                on_value(tag("input", "", 'type="text"'), "input", self._name_token)
            for role in ROLES:
                chip = button(role, lambda: None, "chip on" if role in self._token_roles else "chip")
                chip.on("click", lambda role=role, chip=chip: self._toggle_role(role, chip), [])
                chip.props(f'aria-pressed="{str(role in self._token_roles).lower()}"')
            button("Create a token", self._create, "act second")
        self._fresh = tag("div", "", 'aria-live="polite"')

    def _name_token(self, words: str) -> None:
        self._token_name = words[:200]

    def _toggle_role(self, role: str, chip: Any) -> None:
        self._token_roles ^= {role}
        chip.props(f'aria-pressed="{str(role in self._token_roles).lower()}"')

    async def _create(self) -> None:
        access, broker = self._visitor.access("admin"), self._broker
        if not self._token_name.strip() or not self._token_roles:
            raise BuildError("a token needs a name and at least one role", hint="enter a name and choose a role")
        name, roles = self._token_name.strip(), sorted(self._token_roles)
        token, secret = await broker.write(
            lambda connection: broker.keyring.create(connection, name=name, namespace=access.namespace, roles=roles)
        )
        await broker.audit(access, "create token", token.id)
        self._show_tokens()
        with self._fresh:
            text("Copy the token now; it is shown only once:", "hint", tag="p")
            text(secret, "mono", tag="p")

    async def _revoke(self, id: str) -> None:
        access, broker = self._visitor.access("admin"), self._broker
        await broker.write(lambda connection: broker.keyring.revoke(connection, id, namespace=access.scope))
        await broker.audit(access, "revoke token", id)
        self._show_tokens()


def _fact(name: str, words: str, *, bad: bool = False) -> None:
    with tag("div", "fact bad" if bad else "fact"):
        text(name, "what")
        text(words, "big")


def _cells(kind: str, *cells: str) -> None:
    with tag("tr"):
        for cell in cells:
            text(cell, tag=kind)


def _seconds(microseconds: int) -> str:
    """A duration in words.

    >>> _seconds(0), _seconds(1_500_000), _seconds(300_000_000), _seconds(10**12)
    ('none', '1.5 seconds', '5 minutes', '12 days')
    """
    seconds = microseconds / 1e6
    if seconds < 0.05:
        return "none"
    if seconds < 60:
        return f"{seconds:.2g} seconds"
    return f"{seconds / 60:.3g} minutes" if seconds < 86_400 else counted(round(seconds / 86_400), "day")


async def system_view(visitor: Visitor, watch: StreamWatch) -> None:
    """Build the view and keep it up to date."""
    visitor.access("admin")
    view = SystemView(visitor, watch)
    view.build()
    await view.show()
    ui.timer(_TICK, view.refresh)
