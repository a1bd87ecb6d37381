"""The documents of the HTTP interface, as its OpenAPI description shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Scalar = str | bool | int | float
Roles = list[Literal["publish", "subscribe", "admin"]]


class Document(BaseModel):
    """A request body; unknown fields are an error, so that a misspelt one is noticed."""

    model_config = ConfigDict(extra="forbid")


class ProblemModel(BaseModel):
    """RFC 9457: what is wrong, and how to fix it."""

    type: str
    title: str
    status: int
    detail: str
    hint: str | None = None


class EventModel(BaseModel):
    """An event; an attribute may have several values."""

    id: str | None = None
    time: datetime | None = None
    end: datetime | None = None
    theme: list[str] = []
    attributes: dict[str, Scalar | list[Scalar]]


class RejectedModel(BaseModel):
    """An event that was not accepted."""

    index: int
    reason: str
    hint: str | None = None


class ReceiptModel(BaseModel):
    """What became of a publication: accepted events are on disk."""

    accepted: int
    first: int | None = Field(None, description="Log position of the first accepted event.")
    last: int | None = Field(None, description="Log position of the last accepted event.")
    rejected: list[RejectedModel] = []
    rejected_count: int = 0


class StoredEventModel(EventModel):
    """An event of the log."""

    position: int
    received: datetime
    publisher: str


class NewSubscription(Document):
    """Subscriptions to create, in the subscription language."""

    text: str = Field(examples=["parking: {type~ = parking~, slots > 0}"], min_length=1)
    tags: list[str] = Field([], max_length=20)
    paused: bool = False
    webhook: str | None = Field(None, description="Where to send notifications.", max_length=2000)


class ReplacedSubscription(Document):
    """A subscription in place of the one of its name."""

    text: str = Field(min_length=1, examples=["{type~ = parking~, slots > 0}"])
    tags: list[str] = Field([], max_length=20)
    paused: bool = False
    webhook: str | None = Field(None, max_length=2000)


class SinkSubscription(Document):
    """A subscription as the CloudEvents Subscriptions API writes it."""

    filters: list[dict[str, str]] = Field(examples=[[{"likewise": "{type~ = parking~, slots > 0}"}]], max_length=10)
    sink: str = Field(description="Where CloudEvents are sent.", min_length=1, max_length=2000)
    protocol: str = Field("HTTP", max_length=40)
    source: str | None = Field(None, max_length=2000)
    types: list[str] = Field([], max_length=100)


class SinkSubscriptionModel(BaseModel):
    """A subscription with its sink."""

    id: str
    filters: list[dict[str, str]]
    sink: str
    protocol: str
    secret: str | None = Field(None, description="What signs the deliveries; shown once.")


class ChangedSubscription(Document):
    """The parts of a subscription to change."""

    text: str | None = Field(None, min_length=1)
    tags: list[str] | None = Field(None, max_length=20)
    paused: bool | None = None
    webhook: str | None = Field(None, description="A URL, or an empty text to remove it.", max_length=2000)


class WebhookModel(BaseModel):
    """The webhook of a subscription."""

    url: str
    state: str = "active"


class SubscriptionModel(BaseModel):
    """A subscription."""

    name: str
    text: str
    pattern: bool
    tags: list[str]
    owner: str
    paused: bool
    created: datetime
    updated: datetime
    webhook: WebhookModel | None = None
    notifications: int = Field(description="Since the broker started.")
    secret: str | None = Field(None, description="Signs webhooks; shown when the webhook is set.")


class SubscriptionsModel(BaseModel):
    """A page of subscriptions."""

    subscriptions: list[SubscriptionModel]
    next: str | None = None


class NotificationModel(BaseModel):
    """One event that answers a subscription, or the events of a pattern."""

    id: str
    subscription: str
    kind: Literal["match", "detection"]
    score: float
    time: datetime | None = None
    roles: dict[str, list[str]] | None = None
    trace: list[dict[str, Any]] | None = None
    events: list[EventModel]


class NotificationsModel(BaseModel):
    """A page of notifications."""

    notifications: list[NotificationModel]
    next: str | None = Field(None, description="The cursor of the next page.")


class EventsModel(BaseModel):
    """A page of events."""

    events: list[StoredEventModel]
    next: int | None = Field(None, description="The position where the next page begins.")


class ExplanationModel(BaseModel):
    """Why, predicate by predicate, or why not."""

    matched: bool
    score: float
    threshold: float
    subscription: str
    event: str
    text: str
    why_not: str | None = None
    steps: list[dict[str, Any]]


class TrialModel(Document):
    """A subscription to try on recent events."""

    text: str = Field(min_length=1)
    minutes: float = Field(60, gt=0, le=7 * 1440)
    limit: int = Field(20, ge=1, le=200)


class TrialHitModel(BaseModel):
    """What a tried subscription would have found."""

    score: float
    events: list[EventModel]
    explanation: str
    roles: dict[str, list[str]] | None = None


class TrialResultModel(BaseModel):
    """What a subscription would have found, and what it narrowly missed."""

    events: int = Field(description="Events looked at.")
    found: int
    threshold: float | None = None
    hits: list[TrialHitModel]
    near_misses: list[TrialHitModel] = []


class PulledModel(BaseModel):
    """What a consumer has not acknowledged yet."""

    notifications: list[NotificationModel]
    cursor: str = Field(description="Acknowledge this when all of these are dealt with.")


class CursorModel(Document):
    """How far a consumer has come."""

    cursor: str = Field(pattern=r"^[0-9]{1,18}$")


class ConsumersModel(BaseModel):
    """The cursors of consumers."""

    consumers: dict[str, str]


class AdvanceModel(Document):
    """A moment up to which all events have come."""

    time: datetime


class NewToken(Document):
    """A token to create."""

    name: str = Field(min_length=1, max_length=200)
    roles: Roles = Field(min_length=1)
    namespace: str | None = Field(None, description="The own one by default; `*` may choose.")
    expires: datetime | None = None


class TokenModel(BaseModel):
    """A token, without its secret."""

    id: str
    name: str
    namespace: str
    roles: list[str]
    made: datetime
    expires: datetime | None = None
    revoked: bool


class IssuedTokenModel(TokenModel):
    """A token with its text, shown this once."""

    token: str


class TokensModel(BaseModel):
    """Tokens."""

    tokens: list[TokenModel]


class MappingModel(Document):
    """How a flat record becomes an event."""

    id: str | list[str] | None = Field(None, description="The field that is the id; of several, the first present.")
    time: str | list[str] | None = Field(None, description="The field that is the time, or several such fields.")
    end: str | list[str] | None = Field(None, description="The field that is the end time, or several such fields.")
    theme: str | list[str] = Field([], description="A field that holds tags, or the tags of all events.")
    attributes: dict[str, str] | list[str] | None = Field(
        None, description="The fields to take, or fields and what to call them; all others by default."
    )
    constants: dict[str, str] = Field({}, description="Attributes of every event.")
    kinds: dict[str, Literal["text", "number", "boolean", "time"]] = Field({}, description="What values are.")
    time_format: str | dict[str, str] | None = Field(None, description="A strptime format, or one for each field.")
    zone: str | dict[str, str] | None = Field(None, description="The zone of times that name none.")


class MappingsModel(BaseModel):
    """Saved mappings by name."""

    mappings: dict[str, MappingModel]


class AuditModel(BaseModel):
    """One administrative act."""

    id: int
    time: datetime
    actor: str
    action: str
    target: str


class AuditsModel(BaseModel):
    """A page of the audit log, newest first."""

    entries: list[AuditModel]
    next: int | None = None


class LetterModel(BaseModel):
    """Something that could not be used or delivered."""

    id: int
    time: datetime
    source: str
    reason: str
    body: str


class LettersModel(BaseModel):
    """A page of dead letters, newest first."""

    letters: list[LetterModel]
    next: int | None = None


class HealthModel(BaseModel):
    """Whether the broker works."""

    status: str
    checks: dict[str, str] = {}


class InfoModel(BaseModel):
    """Versions and what the engines stand on."""

    version: str
    api: str
    schema_version: int
    spaces: list[dict[str, Any]]
    approach: str | None
    namespace: str
    roles: list[str]
    position: int
    subscriptions: int
    tokens: bool
