"""The subscription language: text to subscriptions and patterns, and back."""

from likewise.language._model import *  # noqa: F403
from likewise.language._model import __all__ as __all__
