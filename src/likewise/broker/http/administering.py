"""Administration: tokens, audit log, dead letters, mappings of flat records, backup."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request, Response
from sqlalchemy import Connection
from starlette.background import BackgroundTask
from starlette.responses import FileResponse

from likewise.broker.auth import ANY
from likewise.broker.errors import AccessError
from likewise.broker.http.documents import json_response, token_document
from likewise.broker.http.guard import access_of, broker_of
from likewise.broker.http.models import (
    AuditsModel,
    IssuedTokenModel,
    LettersModel,
    MappingModel,
    MappingsModel,
    NewToken,
    ReceiptModel,
    TokensModel,
)
from likewise.broker.store import schema
from likewise.events import RecordMapping, to_datetime, to_instant

router = APIRouter(tags=["administration"])


@router.get("/v1/tokens", summary="Tokens", operation_id="list_tokens", response_model=TokensModel)
async def list_tokens(request: Request) -> Response:
    """The tokens of the namespace, without their secrets."""
    broker, access = broker_of(request), access_of(request, "admin")
    return json_response({"tokens": [token_document(token) for token in broker.keyring.list(access.scope)]})


@router.post(
    "/v1/tokens",
    summary="Create a token",
    operation_id="create_token",
    status_code=201,
    response_model=IssuedTokenModel,
)
async def create_token(request: Request, wanted: NewToken) -> Response:
    """Create a token for a namespace and some roles. Its text is returned only once."""
    broker, access = broker_of(request), access_of(request, "admin")
    namespace = wanted.namespace or access.namespace
    if namespace != access.namespace and access.scope != ANY:
        raise AccessError("this token cannot create tokens for other namespaces", authenticated=True)
    expires = None if wanted.expires is None else to_instant(wanted.expires)
    token, text = await broker.write(
        lambda connection: broker.keyring.create(
            connection, name=wanted.name, namespace=namespace, roles=wanted.roles, expires=expires
        )
    )
    await broker.audit(access, "create token", token.id)
    return json_response(token_document(token) | {"token": text}, 201)


@router.post(
    "/v1/tokens/{id}/rotate",
    summary="Give a token a new secret",
    operation_id="rotate_token",
    response_model=IssuedTokenModel,
)
async def rotate_token(
    request: Request, id: str, grace: Annotated[float, Query(ge=0, le=86_400 * 30)] = 3600.0
) -> Response:
    """The old secret stays valid for `grace` seconds."""
    broker, access = broker_of(request), access_of(request, "admin")
    token, text = await broker.write(
        lambda connection: broker.keyring.rotate(connection, id, namespace=access.scope, grace=grace)
    )
    await broker.audit(access, "rotate token", id)
    return json_response(token_document(token) | {"token": text})


@router.delete("/v1/tokens/{id}", summary="Revoke a token", operation_id="revoke_token", status_code=204)
async def revoke_token(request: Request, id: str) -> Response:
    """Revoke a token, effective immediately."""
    broker, access = broker_of(request), access_of(request, "admin")
    await broker.write(lambda connection: broker.keyring.revoke(connection, id, namespace=access.scope))
    await broker.audit(access, "revoke token", id)
    return Response(status_code=204)


@router.get("/v1/audit", summary="Audit log", operation_id="list_audit", response_model=AuditsModel)
async def list_audit(
    request: Request,
    before: Annotated[int, Query(ge=0, le=2**62)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """Administrative actions, newest first."""
    broker, access = broker_of(request), access_of(request, "admin")
    rows = await broker.read(lambda: broker.history.table(schema.audit, access.namespace, before=before, limit=limit))
    names = ("id", "actor", "action", "target")
    entries = [{name: row[name] for name in names} | {"time": to_datetime(row["time"])} for row in rows]
    return json_response({"entries": entries, "next": entries[-1]["id"] if len(entries) == limit else None})


@router.get("/v1/dead-letters", summary="Dead letters", operation_id="list_dead_letters", response_model=LettersModel)
async def list_dead_letters(
    request: Request,
    before: Annotated[int, Query(ge=0, le=2**62)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """Events and notifications that could not be used or delivered, with the reason, newest first."""
    broker, access = broker_of(request), access_of(request, "admin")
    rows = await broker.read(
        lambda: broker.history.table(schema.dead_letters, access.namespace, before=before, limit=limit)
    )
    names = ("id", "source", "reason")
    letters = [
        {name: row[name] for name in names}
        | {"time": to_datetime(row["time"]), "body": bytes(row["body"]).decode("utf-8", "replace")}
        for row in rows
    ]
    return json_response({"letters": letters, "next": letters[-1]["id"] if len(letters) == limit else None})


@router.post(
    "/v1/dead-letters/{id}/retry",
    summary="Retry a dead letter",
    operation_id="retry_dead_letter",
    response_model=ReceiptModel,
)
async def retry_dead_letter(request: Request, id: int) -> Response:
    """Publish an event again, or send a notification to its webhook again."""
    broker, access = broker_of(request), access_of(request, "admin")
    receipt = await broker.retry_dead_letter(access, id)
    return json_response(
        {
            "accepted": receipt.accepted,
            "first": receipt.first,
            "last": receipt.last,
            "rejected": [],
            "rejected_count": 0,
        }
    )


@router.delete(
    "/v1/dead-letters/{id}", summary="Delete a dead letter", operation_id="forget_dead_letter", status_code=204
)
async def forget_dead_letter(request: Request, id: int) -> Response:
    """Delete a dead letter without a retry."""
    broker, access = broker_of(request), access_of(request, "admin")
    await broker.read(broker.history.letter, access.namespace, id)
    await broker.delete_dead_letter(access, id)
    return Response(status_code=204)


@router.get(
    "/v1/mappings", summary="Mappings of flat records", operation_id="list_mappings", response_model=MappingsModel
)
async def list_mappings(request: Request) -> Response:
    """All saved mappings by name."""
    broker, access = broker_of(request), access_of(request, "publish")
    mappings = await broker.read(broker.history.mappings, access.namespace)
    return json_response({"mappings": {name: msgspec.Raw(body) for name, body in mappings.items()}})


@router.put("/v1/mappings/{name}", summary="Save a mapping", operation_id="save_mapping", response_model=MappingModel)
async def save_mapping(request: Request, name: str, wanted: MappingModel) -> Response:
    """Save how flat records become events; publish such records with `?mapping=NAME`."""
    broker, access = broker_of(request), access_of(request, "admin")
    mapping = RecordMapping.of_plain(wanted.model_dump(exclude_defaults=True), source="the mapping")
    body = msgspec.json.encode(mapping.plain())
    table = schema.mappings
    condition = (table.c.namespace == access.namespace) & (table.c.name == name[:255])

    def save(connection: Connection) -> None:
        connection.execute(table.delete().where(condition))
        connection.execute(table.insert(), {"namespace": access.namespace, "name": name[:255], "body": body})

    await broker.write(save)
    await broker.audit(access, "save mapping", name[:255])
    return Response(body, media_type="application/json")


@router.post(
    "/v1/backup",
    summary="Back up the service",
    operation_id="backup",
    response_class=FileResponse,
    responses={200: {"content": {"application/vnd.sqlite3": {"schema": {"type": "string"}}}}},
)
async def backup(request: Request) -> Response:
    """Download the whole database as one consistent file, while the broker runs."""
    broker, access = broker_of(request), access_of(request, "admin")
    if access.scope != ANY:
        raise AccessError("a backup contains all namespaces, but this token is for one", authenticated=True)
    folder = tempfile.TemporaryDirectory(prefix="likewise-backup-", dir=broker.settings.folder)
    target = Path(folder.name) / "broker.sqlite3"
    try:
        await broker.read(broker.database.backup, target)
    except BaseException:  # leave no incomplete copy, whatever the error
        folder.cleanup()
        raise
    await broker.audit(access, "backup", f"position {broker.log.position}")
    return FileResponse(
        target,
        media_type="application/vnd.sqlite3",
        filename="broker.sqlite3",
        background=BackgroundTask(folder.cleanup),
    )
