"""Of pictures the latest waits, of answers all."""

from __future__ import annotations

from himatch.studio.outbox import Outbox


def emptied(outbox: Outbox) -> list[str | bytes]:
    found = []
    while (payload := outbox.take()) is not None:
        found.append(payload)
    return found


def test_a_slow_browser_gets_the_latest_picture_and_every_answer() -> None:
    calls: list[None] = []
    outbox = Outbox(lambda: calls.append(None))
    outbox.put("ready")
    for number in range(5):
        outbox.put(bytes([number]), latest="frame")
        outbox.put(f"state {number}", latest="state")
    outbox.put("error")
    outbox.put(b"last", latest="frame")
    outbox.put("end")
    assert len(calls) == 14
    assert len(outbox) == 5
    assert emptied(outbox) == ["ready", "state 4", "error", b"last", "end"]
    assert outbox.take() is None


def test_pictures_of_what_is_over_are_dropped_and_answers_are_not() -> None:
    outbox = Outbox(lambda: None)
    outbox.put("ready")
    outbox.put(b"old", latest="frame")
    outbox.put("old", latest="state")
    outbox.drop()
    assert emptied(outbox) == ["ready"]
