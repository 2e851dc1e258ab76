"""What a browser may send, with the bounds of every number: what does not fit is refused in one sentence."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from himatch.errors import HimatchError
from himatch.rollout import Conditioning

ROBOTS = 32  # of every seed
SPEED = (0.1, 50.0)
TEMPERATURE = (0.0, 2.0)
SEED = (0, 1_000_000)
EXPRESSION = 65_536  # characters
BINS = 1_000  # heights in a row of a drawing
BODY = 262_144  # bytes of a message
STEPS = 10_000_000

Name = Annotated[str, Field(max_length=200)]
Expression = Annotated[str, Field(min_length=1, max_length=EXPRESSION)]
Height = Annotated[float, Field(allow_inf_nan=False)]
Row = Annotated[list[Height], Field(max_length=BINS)]
Speed = Annotated[float, Field(ge=SPEED[0], le=SPEED[1], allow_inf_nan=False)]


class Message(BaseModel):
    """Nothing is guessed: no other fields, no numbers in quotation marks."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Chosen(Message):
    """A run and how it is rolled out."""

    run: Name
    feature: Name | None = None
    conditioning: Conditioning = "nominal"
    seed: Annotated[int, Field(ge=SEED[0], le=SEED[1])] = 0
    robots: Annotated[int, Field(ge=1, le=ROBOTS)] = 8
    temperature: Annotated[float | None, Field(ge=TEMPERATURE[0], le=TEMPERATURE[1], allow_inf_nan=False)] = None


class Asked(Chosen):
    """A target to look at: an expression, or bars that were drawn."""

    expression: Expression | None = None
    heights: Annotated[list[Height] | list[Row] | None, Field(max_length=BINS)] = None


class Wanted(Chosen):
    """A target to roll out under, or its first ``steps``."""

    expression: Expression
    steps: Annotated[int | None, Field(ge=1, le=STEPS)] = None

    @property
    def first_steps(self) -> str:
        """The expression, cut to so many steps."""
        return self.expression if self.steps is None else f"({self.expression}) for {self.steps}"


class Start(Wanted):
    """Begin, in place of what is shown."""

    type: Literal["start"]
    speed: Speed = 1.0
    paused: bool = False


class Retarget(Message):
    """From the next step on another target."""

    type: Literal["target"]
    expression: Expression


class SetSpeed(Message):
    """How many seconds of the robot's go by in one."""

    type: Literal["speed"]
    value: Speed


class Simple(Message):
    """What needs no more than a word."""

    type: Literal["pause", "play", "reset", "stop"]


Command = Annotated[Start | Retarget | SetSpeed | Simple, Field(discriminator="type")]
_COMMAND: TypeAdapter[Start | Retarget | SetSpeed | Simple] = TypeAdapter(Command)


def command(content: Any) -> Start | Retarget | SetSpeed | Simple:
    """What a view is asked to do."""
    try:
        return _COMMAND.validate_python(content)
    except ValidationError as reason:
        raise HimatchError(
            mistake(reason.errors(include_url=False, include_input=False, include_context=False))
        ) from None


def mistake(errors: Any) -> str:
    """The first thing that is wrong with a message, in one sentence."""
    first = errors[0]
    place = [str(part) for part in first["loc"] if part not in ("body", "start", "target", "speed")]
    where = f"{'.'.join(place)}: " if place else ""
    said = str(first["msg"])
    return f"{where}{said[:1].lower()}{said[1:]}"[:300]
