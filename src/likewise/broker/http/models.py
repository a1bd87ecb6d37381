"""The JSON documents of the HTTP interface, for validation and the OpenAPI description."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Scalar = str | bool | int | float
Roles = list[Literal["publish", "subscribe", "admin"]]


class Document(BaseModel):
    """A request body; unknown fields are an error, so that misspelt names are noticed."""

    model_config = ConfigDict(extra="forbid")


class ProblemModel(BaseModel):
    """An error (RFC 9457): what is wrong, and how to fix it."""

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
    """The result of publishing; accepted events are on disk."""

    accepted: int
    first: int | None = Field(None, description="Log position of the first accepted event.")
    last: int | None = Field(None, description="Log position of the last accepted event.")
    rejected: list[RejectedModel] = []
    rejected_count: int = 0


class StoredEventModel(EventModel):
    """An event in the log."""

    position: int
    received: datetime
    publisher: str


class NewSubscription(Document):
    """Subscriptions to create, in the subscription language."""

    text: str = Field(examples=["parking: {type~ = parking~, slots > 0}"], min_length=1)
    tags: list[str] = Field([], max_length=20)
    paused: bool = False
    webhook: str | None = Field(None, description="URL that notifications are sent to.", max_length=2000)


class ReplacedSubscription(Document):
    """A subscription that replaces the one of the same name."""

    text: str = Field(min_length=1, examples=["{type~ = parking~, slots > 0}"])
    tags: list[str] = Field([], max_length=20)
    paused: bool = False
    webhook: str | None = Field(None, max_length=2000)


class SinkSubscription(Document):
    """A subscription in the CloudEvents Subscriptions API."""

    filters: list[dict[str, str]] = Field(examples=[[{"likewise": "{type~ = parking~, slots > 0}"}]], max_length=10)
    sink: str = Field(description="URL that CloudEvents are sent to.", min_length=1, max_length=2000)
    protocol: str = Field("HTTP", max_length=40)
    source: str | None = Field(None, max_length=2000)
    types: list[str] = Field([], max_length=100)


class SinkSubscriptionModel(BaseModel):
    """A subscription with its sink."""

    id: str
    filters: list[dict[str, str]]
    sink: str
    protocol: str
    secret: str | None = Field(None, description="Signing secret; returned only once.")


class ChangedSubscription(Document):
    """The fields of a subscription to change."""

    text: str | None = Field(None, min_length=1)
    tags: list[str] | None = Field(None, max_length=20)
    paused: bool | None = None
    webhook: str | None = Field(None, description="A URL, or an empty string to remove the webhook.", max_length=2000)


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
    notifications: int = Field(description="Number of notifications since the broker started.")
    secret: str | None = Field(None, description="Signing secret; returned only when the webhook is set.")


class SubscriptionsModel(BaseModel):
    """A page of subscriptions."""

    subscriptions: list[SubscriptionModel]
    next: str | None = None


class NotificationModel(BaseModel):
    """A match of one event, or a detection of a pattern with its events."""

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
    next: str | None = Field(None, description="Cursor of the next page.")


class EventsModel(BaseModel):
    """A page of events."""

    events: list[StoredEventModel]
    next: int | None = Field(None, description="Log position where the next page starts.")


class ExplanationModel(BaseModel):
    """Why an event matches or does not, predicate by predicate."""

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
    """A match or detection that a trial found."""

    score: float
    events: list[EventModel]
    explanation: str
    roles: dict[str, list[str]] | None = None


class TrialResultModel(BaseModel):
    """What a subscription would have found, and its near misses."""

    events: int = Field(description="Number of events tried.")
    found: int
    threshold: float | None = None
    hits: list[TrialHitModel]
    near_misses: list[TrialHitModel] = []


class PulledModel(BaseModel):
    """Notifications that a consumer has not acknowledged yet."""

    notifications: list[NotificationModel]
    cursor: str = Field(description="Acknowledge this cursor after processing all of these.")


class CursorModel(Document):
    """The acknowledged cursor of a consumer."""

    cursor: str = Field(pattern=r"^[0-9]{1,18}$")


class ConsumersModel(BaseModel):
    """The cursors of consumers."""

    consumers: dict[str, str]


class AdvanceModel(Document):
    """A time up to which all events have arrived."""

    time: datetime


class NewToken(Document):
    """A token to create."""

    name: str = Field(min_length=1, max_length=200)
    roles: Roles = Field(min_length=1)
    namespace: str | None = Field(None, description="By default that of this request; `*` means all namespaces.")
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
    """A token with its text, which is returned only once."""

    token: str


class TokensModel(BaseModel):
    """A list of tokens."""

    tokens: list[TokenModel]


class MappingModel(Document):
    """How a flat record becomes an event."""

    id: str | list[str] | None = Field(None, description="Field with the id; of several, the first present.")
    time: str | list[str] | None = Field(None, description="Field with the time, or several such fields.")
    end: str | list[str] | None = Field(None, description="Field with the end time, or several such fields.")
    theme: str | list[str] = Field([], description="Field with tags, or a list of tags for all events.")
    attributes: dict[str, str] | list[str] | None = Field(
        None, description="Fields to use, or fields and their attribute names; all other fields by default."
    )
    constants: dict[str, str] = Field({}, description="Attributes added to every event.")
    kinds: dict[str, Literal["text", "number", "boolean", "time"]] = Field(
        {}, description="Type of the values of each field."
    )
    time_format: str | dict[str, str] | None = Field(None, description="A strptime format, or one for each field.")
    zone: str | dict[str, str] | None = Field(None, description="Time zone of times without one.")


class MappingsModel(BaseModel):
    """Saved mappings by name."""

    mappings: dict[str, MappingModel]


class AuditModel(BaseModel):
    """One administrative action."""

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
    """An event or notification that could not be used or delivered."""

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
    """Versions, spaces and size of the broker."""

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
