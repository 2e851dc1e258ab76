"""Answers as JSON: plain numbers, and mistakes as one sentence and where in an expression it stands."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np
from starlette.responses import Response

from himatch.errors import ExpressionError

WORD = re.compile(r"\w+(\.\w+)?")
DIGITS = 7


def plain(value: Any) -> Any:
    """In JSON's own types: arrays become lists, and what is no number becomes nothing."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    return value


def short(values: np.ndarray[Any, Any]) -> Any:
    """Arrays for a chart, in as many digits as are seen."""
    rounded = np.round(values.astype(np.float64), DIGITS)
    return plain(rounded)


def text_of(content: Any) -> str:
    """JSON, without NaN or infinity."""
    return json.dumps(plain(content), allow_nan=False, separators=(",", ":"))


class Answer(Response):
    """JSON."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """In UTF-8."""
        return text_of(content).encode()


def refusal(reason: Exception | str) -> dict[str, Any]:
    """What is wrong, and the characters of the expression that it stands at."""
    if isinstance(reason, ExpressionError):
        found = WORD.match(reason.text, reason.position)
        end = found.end() if found else min(reason.position + 1, len(reason.text))
        return {"error": _line(reason.reason), "at": [reason.position, max(end, reason.position)]}
    return {"error": _line(str(reason)), "at": None}


def _line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else "something is wrong"
