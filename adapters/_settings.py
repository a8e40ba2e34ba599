"""Settings of back-ends: model arguments, and how a request is decoded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field, ValidationError
from typing_extensions import Self

from medtasks.core.errors import UsageError
from medtasks.core.schema import Frozen, first_problem

Count = Annotated[int, Field(ge=1)]
Natural = Annotated[int, Field(ge=0)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]


class BackEndSettings(Frozen):
    """User settings; ``source`` is the option or key they come from."""

    source: ClassVar[str] = "generation_kwargs"

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Self:
        """Validate settings; None and empty strings leave a setting at its default.

        Raises:
            UsageError: a setting is unknown or has a wrong value.
        """
        stated = {name: value for name, value in values.items() if value not in (None, "")}
        try:
            return cls.model_validate(stated)
        except ValidationError as error:
            raise UsageError(f"{cls.source}: {first_problem(error, cls)}.") from error


class Arguments(BackEndSettings):
    """``--model_args`` of a back-end.

    Numbers are accepted as text (the harness parses ``revision=12`` as a number). The harness
    passes these three fields to every back-end; those that use one redeclare it.
    """

    model_config = ConfigDict(coerce_numbers_to_str=True)
    source: ClassVar[str] = "model_args"

    batch_size: Any = None
    max_batch_size: Any = None
    device: Any = None


class GeneratingArguments(Arguments):
    """Arguments of every back-end that generates."""

    # checkpoint directory or hub id
    pretrained: str
    # per image (width times height) at most; larger images are scaled down
    max_pixels: Count | None = None
    # per image at least; smaller images are scaled up
    min_pixels: Count | None = None
    # overrides the tasks' own limit
    max_new_tokens: Count | None = None
    # overrides the tasks' own system message
    system_prompt: str | None = None
    # seeds each sampled answer, together with sample id and repeat
    seed: Natural = 0
    # send every prompt without images and frames, to measure what the text alone answers
    blind: bool = False


class GenerationSettings(BackEndSettings):
    """How one request is decoded.

    ``temperature`` 0 is greedy (or beam) search; ``top_p`` 1 and ``top_k`` 0 are no limits.
    ``ignored`` lists settings that have no effect.
    """

    max_new_tokens: Count = 512
    temperature: NonNegative = 0.0
    top_p: Share = 1.0
    top_k: Natural = 0
    num_beams: Count = 1
    repetition_penalty: NonNegative | None = None
    until: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def sampling(self) -> bool:
        """Whether tokens are drawn, not searched."""
        return self.temperature > 0


def read_settings(
    generation_kwargs: Mapping[str, Any], max_new_tokens: int | None = None
) -> GenerationSettings:
    """Read a task's ``generation_kwargs``; ``max_new_tokens`` of the back-end has precedence.

    ``do_sample: false`` means greedy, regardless of temperature.

    Raises:
        UsageError: a setting has a wrong value; names it.
    """
    names = GenerationSettings.model_fields.keys() - {"ignored"}
    settings: dict[str, Any] = {}
    ignored: set[str] = set()
    for name, value in generation_kwargs.items():
        if name in names:
            settings[name] = value
        elif name != "do_sample" and value is not None:
            ignored.add(name)
    settings["until"] = _stop_strings(settings.get("until"))
    settings["max_new_tokens"] = max_new_tokens or settings.get("max_new_tokens")
    settings["top_p"] = settings.get("top_p") or None
    do_sample = generation_kwargs.get("do_sample")
    if do_sample and settings.get("temperature") is None:
        settings["temperature"] = 1.0
    elif do_sample is not None and not do_sample and settings.get("temperature"):
        ignored.add("temperature")
        settings["temperature"] = 0.0
    return GenerationSettings.read({**settings, "ignored": sorted(ignored)})


def _stop_strings(until: Any) -> list[Any]:
    """The stop strings in a setting that is one string or several, without empty ones."""
    if not until:
        return []
    stops = [until] if isinstance(until, str) else until
    return [stop for stop in stops if stop != ""]
