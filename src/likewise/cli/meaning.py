"""Turns the options and settings file about meaning into options of an engine."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise.cli.commands.events.vocabulary import read_background
from likewise.cli.options import MeaningOptions
from likewise.cli.reading.input import read_text, spaces_for
from likewise.cli.reading.spaces import open_spaces
from likewise.errors import BuildError, InputError

if TYPE_CHECKING:
    from likewise.language import Subscription

_KINDS: Mapping[str, tuple[type, ...]] = {
    "approach": (str,),
    "measure": (str,),
    "threshold": (int, float),
    "space": (list, str),
    "background": (str,),
    "glossary": (str,),
}

OFF = "none"
"""The value of `background` in a settings file that switches it off."""


def settled(meaning: MeaningOptions) -> MeaningOptions:
    """The options, with values from the settings file where the command line sets none."""
    if meaning.settings is None:
        return meaning
    settings = read_settings(meaning.settings)
    if meaning.background is not None or meaning.no_background:
        settings = {name: value for name, value in settings.items() if "background" not in name}
    return replace(meaning, **{name: value for name, value in settings.items() if not getattr(meaning, name)})


def read_settings(path: Path) -> dict[str, Any]:
    """Read a settings file; paths in it are relative to its folder."""
    source = str(path)
    try:
        settings = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(
            f"not a settings file: {error}", source=source, hint="write lines such as threshold = 0.5"
        ) from None
    for name, value in settings.items():
        if name not in _KINDS:
            close = get_close_matches(name, _KINDS, n=1)
            guess = f"did you mean {close[0]}? " if close else ""
            raise InputError(f"unknown setting {name!r}", source=source, hint=f"{guess}known: {', '.join(_KINDS)}")
        if not isinstance(value, _KINDS[name]) or isinstance(value, bool):
            raise InputError(f"{name} cannot be {value!r}", source=source, hint="see docs/start.md")
    if not 0 <= settings.get("threshold", 0) <= 1:
        raise InputError(f"threshold {settings['threshold']} is not between 0 and 1", source=source)
    if "space" in settings:
        spaces = [settings["space"]] if isinstance(settings["space"], str) else settings["space"]
        settings["space"] = [_beside(path, space) if "/" in str(space) else str(space) for space in spaces]
    if settings.get("background") == OFF:
        del settings["background"]
        settings["no_background"] = True
    for name in ("background", "glossary"):
        if name in settings:
            settings[name] = Path(_beside(path, settings[name]))
    return settings


def _beside(settings: Path, path: str) -> str:
    return str(settings.parent / path)


def settings_text(values: Mapping[str, Any]) -> str:
    """Settings as the text of a settings file.

    >>> print(settings_text({"approach": "evidence", "threshold": 0.37, "space": ["wordnet"]}), end="")
    approach = "evidence"
    threshold = 0.37
    space = ["wordnet"]
    """
    import json

    # JSON of strings, numbers and lists of strings is also TOML.
    return "".join(f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in values.items())


def command_line(values: Mapping[str, Any]) -> str:
    """Settings as options of a command line.

    >>> command_line({"approach": "evidence", "threshold": 0.37, "space": ["wordnet", "my space"]})
    "--approach evidence --threshold 0.37 --space wordnet --space 'my space'"
    >>> command_line({"background": "none"})
    '--no-background'
    """
    import shlex

    pairs = [(name, item) for name, value in values.items() for item in (value if isinstance(value, list) else [value])]
    return " ".join(
        "--no-background" if pair == ("background", OFF) else f"--{pair[0]} {shlex.quote(str(pair[1]))}"
        for pair in pairs
    )


def engine_options(meaning: MeaningOptions, interests: Iterable[Subscription]) -> dict[str, Any]:
    """Options for `Engine` and `Matcher`; if no space is given and there is any `~`, the best built space.

    `background` is included only if one is given or it is switched off.
    """
    from likewise.semantics import Glossary, measure, needs_space

    spaces = meaning.space or spaces_for(interests, meaning.approach)
    options = spark_options(meaning) | {"spaces": spaces}
    del options["measure"], options["glossary"]
    name = meaning.measure or ("evidence" if meaning.glossary is not None else None)
    if name is not None:
        path = meaning.glossary
        glossary: dict[str, Any] = {} if path is None else {"glossary": Glossary.from_file(path)}
        if glossary and name != "evidence":
            raise BuildError(f"the measure {name} takes no glossary", hint="choose --measure evidence")
        # Evidence needs no space but uses those that are given.
        opened = open_spaces(spaces) if needs_space(name) or (spaces and name == "evidence") else []
        options["measure"] = measure(name, spaces=opened, **glossary)
    return options


def spark_options(meaning: MeaningOptions) -> dict[str, Any]:
    """Options for Spark, which opens the measure, spaces and glossary by name."""
    if meaning.no_background and meaning.background is not None:
        raise BuildError("--background and --no-background exclude each other", hint="leave one of them out")
    names = {field.name: getattr(meaning, field.name) for field in fields(meaning)}
    options = {name: names[name] for name in ("approach", "measure", "threshold", "glossary")}
    if meaning.background is not None:
        options["background"] = read_background(meaning.background)
    elif meaning.no_background:
        options["background"] = None
    return options
