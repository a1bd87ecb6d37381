"""What a command line and a settings file say about meaning, as options of an engine."""

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
"""The background of a settings file that wants none."""


def settled(meaning: MeaningOptions) -> MeaningOptions:
    """The options with those of the settings file filled in where the command line says nothing."""
    if meaning.settings is None:
        return meaning
    found = read_settings(meaning.settings)
    if meaning.background is not None or meaning.no_background:
        found = {name: value for name, value in found.items() if "background" not in name}
    return replace(meaning, **{name: value for name, value in found.items() if not getattr(meaning, name)})


def read_settings(path: Path) -> dict[str, Any]:
    """The options in a settings file; paths in it are relative to its folder."""
    source = str(path)
    try:
        found = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(
            f"not a settings file: {error}", source=source, hint="write lines such as threshold = 0.5"
        ) from None
    for name, value in found.items():
        if name not in _KINDS:
            close = get_close_matches(name, _KINDS, n=1)
            guess = f"did you mean {close[0]}? " if close else ""
            raise InputError(f"unknown setting {name!r}", source=source, hint=f"{guess}there are {', '.join(_KINDS)}")
        if not isinstance(value, _KINDS[name]) or isinstance(value, bool):
            raise InputError(f"{name} cannot be {value!r}", source=source, hint="see docs/start.md")
    if not 0 <= found.get("threshold", 0) <= 1:
        raise InputError(f"threshold {found['threshold']} is not between 0 and 1", source=source)
    if "space" in found:
        given = [found["space"]] if isinstance(found["space"], str) else found["space"]
        found["space"] = [_beside(path, each) if "/" in str(each) else str(each) for each in given]
    if found.get("background") == OFF:
        del found["background"]
        found["no_background"] = True
    for name in ("background", "glossary"):
        if name in found:
            found[name] = Path(_beside(path, found[name]))
    return found


def _beside(settings: Path, path: str) -> str:
    return str(settings.parent / path)


def settings_text(values: Mapping[str, Any]) -> str:
    """Settings as the text of a file.

    >>> print(settings_text({"approach": "tuned", "threshold": 0.37, "space": ["wordnet"]}), end="")
    approach = "tuned"
    threshold = 0.37
    space = ["wordnet"]
    """
    import json

    # What JSON writes for texts, numbers and lists of texts is TOML, too.
    return "".join(f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in values.items())


def command_line(values: Mapping[str, Any]) -> str:
    """The same as options to paste.

    >>> command_line({"approach": "tuned", "threshold": 0.37, "space": ["wordnet", "my space"]})
    "--approach tuned --threshold 0.37 --space wordnet --space 'my space'"
    >>> command_line({"background": "none"})
    '--no-background'
    """
    import shlex

    pairs = [(name, each) for name, value in values.items() for each in (value if isinstance(value, list) else [value])]
    return " ".join(
        "--no-background" if pair == ("background", OFF) else f"--{pair[0]} {shlex.quote(str(pair[1]))}"
        for pair in pairs
    )


def engine_options(meaning: MeaningOptions, interests: Iterable[Subscription]) -> dict[str, Any]:
    """Options for `Engine` and `Matcher`; without a space, the shelf's, if there is any `~`.

    They have a background only if one is given or switched off.
    """
    from likewise.semantics import Glossary, measure, needs_space

    spaces = meaning.space or spaces_for(interests, meaning.approach)
    options = spark_options(meaning) | {"spaces": spaces}
    del options["measure"], options["glossary"]
    name = meaning.measure or ("evidence" if meaning.glossary is not None else None)
    if name is not None:
        given = meaning.glossary
        words: dict[str, Any] = {} if given is None else {"glossary": Glossary.from_file(given)}
        if words and name != "evidence":
            raise BuildError(f"the measure {name} takes no glossary", hint="choose --measure evidence")
        # Evidence does without spaces, but uses those that are there.
        opened = open_spaces(spaces) if needs_space(name) or (spaces and name == "evidence") else []
        options["measure"] = measure(name, spaces=opened, **words)
    return options


def spark_options(meaning: MeaningOptions) -> dict[str, Any]:
    """The same for Spark, which finds measure, spaces and glossary by their names."""
    if meaning.no_background and meaning.background is not None:
        raise BuildError("a background and none at all", hint="leave out --background or --no-background")
    names = {field.name: getattr(meaning, field.name) for field in fields(meaning)}
    options = {name: names[name] for name in ("approach", "measure", "threshold", "glossary")}
    if meaning.background is not None:
        options["background"] = read_background(meaning.background)
    elif meaning.no_background:
        options["background"] = None
    return options
