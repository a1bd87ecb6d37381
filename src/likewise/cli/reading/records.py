"""How the records of a feed become events: options that are the same for every command that reads events."""

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
"""A field before a format or a zone; a format has a sign of percent."""


@dataclass(frozen=True, slots=True)
class Records:
    """What a user said about the records; without a word, their mapping is guessed and shown."""

    panel: ClassVar[str] = "Records that are not events yet"
    format: Annotated[
        str,
        typer.Option(
            help="jsonl, json, csv, parquet, avro, logfmt, syslog, cloudevents, ntriples, turtle; default: by content."
        ),
    ] = "auto"
    id: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD", help="Field of the id; repeated: the first present; default: file and line."),
    ] = None
    time: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD", help="Field of the time, or two as `date+clock`; repeated: the first present."),
    ] = None
    end: Annotated[list[str] | None, typer.Option(metavar="FIELD", help="Field of the end; may be repeated.")] = None
    keep: Annotated[
        list[str] | None, typer.Option(metavar="FIELD[=NAME]", help="Take only these fields, renamed or not.")
    ] = None
    kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=KIND", help="What the values of a column are: text, number, decimal comma, boolean or time."
        ),
    ] = None
    add: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="An attribute of every event; may be repeated.")
    ] = None
    theme: Annotated[
        list[str] | None, typer.Option(metavar="TAG", help="A theme tag of every event; may be repeated.")
    ] = None
    theme_field: Annotated[str | None, typer.Option(metavar="FIELD", help="Field of the theme tags.")] = None
    time_format: Annotated[
        list[str] | None,
        typer.Option(metavar="[FIELD=]FORMAT", help="How times are written, such as `%d/%m/%Y %H:%M` or `ms`."),
    ] = None
    zone: Annotated[
        list[str] | None,
        typer.Option(metavar="[FIELD=]ZONE", help="Zone of times that name none, such as Europe/Dublin."),
    ] = None
    separator: Annotated[
        str | None, typer.Option("--separator", "--divider", help="What stands between cells; seen from the header.")
    ] = None
    mapping: Annotated[Path | None, typer.Option(metavar="FILE", help="Mapping file, instead of these options.")] = None
    save_mapping: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the mapping in use to this file.")
    ] = None

    def options(self) -> dict[str, Any]:
        """What the reader is to know."""
        mapping = self._mapping()
        if mapping is not None and self.save_mapping is not None:
            mapping.save(self.save_mapping)
        read = {"format": self.format, "mapping": mapping, "separator": self.separator}
        return read | {"on_mapping": self._guessed}

    def command_line(self) -> list[str]:
        """The same options as words of a command line, but for what is written.

        >>> Records(id=["nr"], time=["date+clock"], mapping=None, format="csv").command_line()
        ['--format', 'csv', '--id', 'nr', '--time', 'date+clock']
        """
        told = [(each.name, getattr(self, each.name), each.default) for each in fields(self)]
        given = [(name, value) for name, value, usual in told if value != usual and name != "save_mapping"]
        return [
            word
            for name, value in given
            for item in (value if isinstance(value, list) else [value])
            for word in (f"--{name.replace('_', '-')}", str(item))
        ]

    def on_spark(self, path: str) -> dict[str, Any]:
        """What Spark's reader is to know: a guess is made here, by the first records of a file."""
        from likewise.events import look_at

        place, mapping = _first_file(path), self._mapping()
        if place is None:
            if mapping is not None and not mapping.complete:
                raise BuildError("a mapping cannot be guessed for what Spark alone reads", hint="give --mapping FILE")
            return {"format": self.format, "columns": mapping}
        look = look_at(place, format=self.format, mapping=mapping, separator=self.separator)
        found = look.mapping
        if found is not None and (mapping is None or not mapping.complete):
            self._guessed(found)
        if found is not None and look.format == "csv" and found.zone is None:
            found = replace(found, zone="UTC")  # as in one process, whatever the zone of the session
        sep = {"options": {"sep": look.separator}} if look.separator not in (None, ",") else {}
        return {"format": look.format, "columns": found, **sep}

    def whole_mapping(self) -> RecordMapping | None:
        """The mapping of records that nobody can look at beforehand: it says all, or what it leaves out is nowhere."""
        mapping = self._mapping()
        return None if mapping is None else replace(mapping, complete=True)

    def _mapping(self) -> RecordMapping | None:
        from likewise.events import RecordMapping

        if self.theme and self.theme_field:
            raise BuildError("--theme and --theme-field exclude each other", hint="leave one of them out")
        told: dict[str, Any] = {role: _few(getattr(self, role)) for role in ("id", "time", "end")}
        told |= {"time_format": _by_field(self.time_format), "zone": _by_field(self.zone)}
        told |= {"theme": self.theme_field or tuple(self.theme or ()), "constants": dict(map(_pair, self.add or ()))}
        told |= {"attributes": _names(self.keep), "kinds": dict(map(_kind, self.kind or ()))}
        given = {name: value for name, value in told.items() if value or value == ""}
        if self.mapping is None:
            return RecordMapping(**given, complete=False) if given else None
        if given:
            raise BuildError("--mapping excludes the options that name fields", hint="change the mapping file instead")
        return RecordMapping.load(self.mapping)

    def _guessed(self, mapping: RecordMapping) -> None:
        """Show a mapping that was guessed, and keep it if asked to."""
        if self.save_mapping is not None:
            mapping.save(self.save_mapping)
        kept = f"saved in {self.save_mapping}" if self.save_mapping else "--save-mapping FILE keeps it"
        errors.print(f"guessed mapping: {mapping} ({kept})", markup=False, soft_wrap=True)
        if "time" not in mapping.used:
            told = "no time was found: --time names it, --time-format '%d/%m/%Y %H:%M' reads it"
            errors.print(f"{told}; --time day+clock joins a date and a time of day", soft_wrap=True)


def _first_file(path: str) -> Path | None:
    """A file to look at: the path itself, or the first in a folder; none where only Spark can read."""
    place = Path(path)
    if place.is_dir():
        files = (each for each in place.rglob("*") if each.is_file() and not each.name.startswith((".", "_")))
        return min(files, default=None)
    return place if place.is_file() and place.suffix != ".sqlite3" else None


def _few(names: list[str] | None) -> str | list[str] | None:
    return names[0] if names and len(names) == 1 else names


def _by_field(given: list[str] | None) -> str | dict[str, str] | None:
    """Formats or zones: one for all times, or by their fields, `*` for those that are not named.

    >>> _by_field(["%d.%m.%Y"]), _by_field(["UTC", "zeitpunkt=Europe/Berlin"])
    ('%d.%m.%Y', {'*': 'UTC', 'zeitpunkt': 'Europe/Berlin'})
    """
    pairs = [found.groups() if (found := _FIELD.fullmatch(each)) else (None, each) for each in given or ()]
    if all(name is None for name, _ in pairs):
        return str(pairs[-1][1]) if pairs else None
    return {str(name or "*"): str(value) for name, value in pairs}


def _names(keep: list[str] | None) -> dict[str, str] | None:
    parts = [each.partition("=") for each in keep or ()]
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
