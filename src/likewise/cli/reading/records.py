"""The options that turn flat records into events, the same for every command that reads events."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

import typer

from likewise.cli.output import errors
from likewise.errors import BuildError

if TYPE_CHECKING:
    from likewise.events import RecordMapping

_FIELD: Final = re.compile(r"([^%=\s]+)=(.+)")
"""`FIELD=VALUE` for a format or zone; a field contains no percent sign."""


@dataclass(frozen=True, slots=True)
class Records:
    """How records map to events; without options the mapping is guessed and shown."""

    panel: ClassVar[str] = "Mapping of records to events (guessed if not given)"
    format: Annotated[
        str,
        typer.Option(
            help="auto, jsonl, json, csv, parquet, avro, logfmt, syslog, cloudevents, ntriples or turtle; "
            "auto looks at the content."
        ),
    ] = "auto"
    id: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD", help="Field of the id; if repeated, the first present. [default: file and line]"),
    ] = None
    time: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD",
            help="Field of the time, or `date+clock` for a date and a time of day; if repeated, the first present.",
        ),
    ] = None
    end: Annotated[
        list[str] | None, typer.Option(metavar="FIELD", help="Field of the end time; if repeated, the first present.")
    ] = None
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD[=NAME]", help="Keep only this field, optionally renamed; may be repeated."),
    ] = None
    kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=KIND",
            help="Type of a field's values: text, number, decimal comma, boolean or time; may be repeated.",
        ),
    ] = None
    add: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Add an attribute to every event; may be repeated.")
    ] = None
    theme: Annotated[
        list[str] | None, typer.Option(metavar="TAG", help="Add a theme tag to every event; may be repeated.")
    ] = None
    theme_field: Annotated[str | None, typer.Option(metavar="FIELD", help="Field with the theme tags.")] = None
    time_format: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[FIELD=]FORMAT",
            help="Format of times, such as `%d/%m/%Y %H:%M` or `ms` (milliseconds since 1970).",
        ),
    ] = None
    zone: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[FIELD=]ZONE", help="Time zone of times without one, such as Europe/Dublin. [default: UTC]"
        ),
    ] = None
    separator: Annotated[
        str | None,
        typer.Option(help="Separator of CSV cells. [default: found in the header]"),
    ] = None
    mapping: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Read the mapping from this file instead of these options.")
    ] = None
    save_mapping: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the mapping to this file, for --mapping.")
    ] = None

    def options(self) -> dict[str, Any]:
        """The arguments for the event readers."""
        mapping = self._mapping()
        if mapping is not None and self.save_mapping is not None:
            mapping.save(self.save_mapping)
        arguments = {"format": self.format, "mapping": mapping, "separator": self.separator}
        return arguments | {"on_mapping": self._guessed}

    def command_line(self) -> list[str]:
        """These options as words of a command line, without `--save-mapping`.

        >>> Records(id=["nr"], time=["date+clock"], mapping=None, format="csv").command_line()
        ['--format', 'csv', '--id', 'nr', '--time', 'date+clock']
        """
        options = [(field.name, getattr(self, field.name), field.default) for field in fields(self)]
        changed = [(name, value) for name, value, default in options if value != default and name != "save_mapping"]
        return [
            word
            for name, value in changed
            for item in (value if isinstance(value, list) else [value])
            for word in (f"--{name.replace('_', '-')}", str(item))
        ]

    def on_spark(self, path: str) -> dict[str, Any]:
        """The arguments for Spark's reader; a missing mapping is guessed here from the first records of a file."""
        from likewise.events import look_at

        file, mapping = _first_file(path), self._mapping()
        if file is None:
            if mapping is not None and not mapping.complete:
                raise BuildError("the mapping cannot be guessed: only Spark can read this", hint="give --mapping FILE")
            return {"format": self.format, "columns": mapping}
        look = look_at(file, format=self.format, mapping=mapping, separator=self.separator)
        columns = look.mapping
        if columns is not None and (mapping is None or not mapping.complete):
            self._guessed(columns)
        if columns is not None and look.format == "csv" and columns.zone is None:
            columns = replace(columns, zone="UTC")  # as in one process, whatever the zone of the session
        sep = {"options": {"sep": look.separator}} if look.separator not in (None, ",") else {}
        return {"format": look.format, "columns": columns, **sep}

    def whole_mapping(self) -> RecordMapping | None:
        """The mapping without any guess, for records that cannot be looked at in advance."""
        mapping = self._mapping()
        return None if mapping is None else replace(mapping, complete=True)

    def _mapping(self) -> RecordMapping | None:
        from likewise.events import RecordMapping

        if self.theme and self.theme_field:
            raise BuildError("--theme and --theme-field exclude each other", hint="leave one of them out")
        parts: dict[str, Any] = {role: _few(getattr(self, role)) for role in ("id", "time", "end")}
        parts |= {"time_format": _by_field(self.time_format), "zone": _by_field(self.zone)}
        parts |= {"theme": self.theme_field or tuple(self.theme or ()), "constants": dict(map(_pair, self.add or ()))}
        parts |= {"attributes": _names(self.keep), "kinds": dict(map(_kind, self.kind or ()))}
        naming = {name: value for name, value in parts.items() if value or value == ""}
        if self.mapping is None:
            return RecordMapping(**naming, complete=False) if naming else None
        if naming:
            raise BuildError("--mapping excludes the options that name fields", hint="change the mapping file instead")
        return RecordMapping.load(self.mapping)

    def _guessed(self, mapping: RecordMapping) -> None:
        """Show a guessed mapping, and save it if requested."""
        if self.save_mapping is not None:
            mapping.save(self.save_mapping)
        kept = f"saved in {self.save_mapping}" if self.save_mapping else "--save-mapping FILE keeps it"
        errors.print(f"guessed mapping: {mapping} ({kept})", markup=False, soft_wrap=True)
        if "time" not in mapping.used:
            errors.print(
                "no time field was found: name it with --time FIELD (--time date+clock for two fields), "
                "and its format with --time-format '%d/%m/%Y %H:%M'",
                soft_wrap=True,
            )


def _first_file(path: str) -> Path | None:
    """The file, or the first one in a folder; None if only Spark can read the path."""
    place = Path(path)
    if place.is_dir():
        files = (file for file in place.rglob("*") if file.is_file() and not file.name.startswith((".", "_")))
        return min(files, default=None)
    return place if place.is_file() and place.suffix != ".sqlite3" else None


def _few(names: list[str] | None) -> str | list[str] | None:
    return names[0] if names and len(names) == 1 else names


def _by_field(texts: list[str] | None) -> str | dict[str, str] | None:
    """Formats or zones: one for all times, or a dictionary by field with `*` for all other fields.

    >>> _by_field(["%d.%m.%Y"]), _by_field(["UTC", "zeitpunkt=Europe/Berlin"])
    ('%d.%m.%Y', {'*': 'UTC', 'zeitpunkt': 'Europe/Berlin'})
    """
    pairs = [parts.groups() if (parts := _FIELD.fullmatch(text)) else (None, text) for text in texts or ()]
    if all(name is None for name, _ in pairs):
        return str(pairs[-1][1]) if pairs else None
    return {str(name or "*"): str(value) for name, value in pairs}


def _names(keep: list[str] | None) -> dict[str, str] | None:
    parts = [text.partition("=") for text in keep or ()]
    return {field: name or field for field, _, name in parts} or None


def _kind(text: str) -> tuple[str, str]:
    name, sign, kind = text.rpartition("=")
    if not sign or not name:
        raise BuildError(f"--kind takes FIELD=KIND, not {text!r}", hint="for example --kind room=text")
    return name, kind


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name or not value:
        raise BuildError(f"--add takes NAME=VALUE, not {text!r}", hint="for example --add type=temperature")
    return name, value
