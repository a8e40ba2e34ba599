"""What a table leaves open: a person is asked on a terminal, and told the option otherwise."""

from __future__ import annotations

from collections.abc import Sequence

from medtasks.core.errors import UsageError


class Undecided(UsageError):
    """Several choices are plausible, or none is.

    Args:
        message: what was found, for the sentence that is printed without a terminal.
        option: how the choice is passed, up to its value: ``--column answer=``.
        candidates: the plausible choices; if empty, any column may be meant.
        text_option: how a text is passed in place of a choice, up to the text: ``--question ``.
    """

    def __init__(
        self, message: str, option: str, candidates: Sequence[str] = (), text_option: str = ""
    ) -> None:
        values = candidates or ["NAME"]
        choices = [_argument(option, value) for value in values[:3]]
        if text_option:
            choices.append(f"{text_option}'…' (the same for all rows)")
        super().__init__(f"{message}; pass {' or '.join(choices)}.")
        self.reason = message
        self.option = option
        self.candidates = tuple(candidates)
        self.text_option = text_option


def _argument(option: str, value: str) -> str:
    """The option with a value, quoted if a shell would split it."""
    needs_quotes = any(not (letter.isalnum() or letter in "_-./") for letter in value)
    prefix, blank, name = option.partition(" ")
    return f"{prefix}{blank}'{name}{value}'" if needs_quotes else f"{option}{value}"
