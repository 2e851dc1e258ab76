"""A view: a simulation in a thread of its own, which plays as a browser says and never waits for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread

from himatch._runtime.memory import give_back
from himatch.errors import HimatchError, one_line
from himatch.studio.answers import refusal, text_of
from himatch.studio.catalog import FRAMES, Catalog
from himatch.studio.messages import Retarget, SetSpeed, Simple, Start
from himatch.studio.outbox import Outbox
from himatch.studio.scene import Scene

STATES = 12  # a second
BEHIND = 0.25  # seconds by which a simulation may lag; what is more is not made up for

Command = Start | Retarget | SetSpeed | Simple


class View:
    """One browser's robots. ``do`` hands a command over; ``outbox`` is what they send. ``close`` frees everything.

    ``closed`` is called from the view's own thread once its simulation is freed.
    """

    def __init__(self, catalog: Catalog, deliver: Callable[[], None], closed: Callable[[View], None]) -> None:
        self._catalog, self._closed = catalog, closed
        self.outbox = Outbox(deliver)
        self._commands: SimpleQueue[Command | None] = SimpleQueue()
        self._leaving = False
        self._scene: Scene | None = None
        self._threads = ExitStack()
        self._last: Start | None = None
        self._paused, self._speed = False, 1.0
        self._due = self._frame_at = self._state_at = 0.0
        self._since: tuple[float, int] = (0.0, 0)
        self._thread = Thread(target=self._work, name="himatch studio view", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Commands and answers that nobody has taken yet."""
        return self._commands.qsize() + len(self.outbox)

    def do(self, command: Command) -> None:
        """Hand a command over; the answer comes through the outbox."""
        self._commands.put(command)

    def close(self) -> None:
        """Stop and free the simulation, after the step that is being made."""
        self._leaving = True
        self._commands.put(None)

    def join(self, seconds: float) -> None:
        """Wait until it is freed."""
        self._thread.join(seconds)

    # -- the thread ---------------------------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            while not self._leaving:
                try:
                    command = self._commands.get(timeout=self._pause())
                except Empty:
                    self._guarded(self._advance)
                    continue
                if command is not None:
                    self._guarded(partial(self._obey, command))
        finally:
            self._free()
            self._closed(self)

    def _guarded(self, act: Callable[[], None]) -> None:
        """What goes wrong is said in one line; nothing that a browser asks for ends the thread."""
        try:
            act()
        except HimatchError as reason:
            self._refuse(reason)
        except Exception as reason:  # an environment of the user's own, or MuJoCo
            self._free()
            self._refuse(f"the simulation failed and was stopped ({one_line(reason)})")

    def _refuse(self, reason: Exception | str) -> None:
        self.outbox.put(text_of({"type": "error", **refusal(reason)}))

    def _going(self) -> bool:
        return self._scene is not None and not self._scene.over

    @property
    def _playing(self) -> bool:
        return self._going() and not self._paused

    def _pause(self) -> float | None:
        """Seconds until the next step; ``None`` while nothing is played."""
        return max(0.0, self._due - time.perf_counter()) if self._playing else None

    def _obey(self, command: Command) -> None:
        if isinstance(command, Start):
            self._speed, self._paused = command.speed, command.paused
            self._begin(command)
        elif isinstance(command, SetSpeed):
            self._shown()
            self._speed = command.value
            self._restart_clock()
            self._send_state()
        elif isinstance(command, Retarget):
            self._retarget(command.expression)
        else:
            {"pause": self._rest, "play": self._play, "reset": self._reset, "stop": self._stop}[command.type]()

    def _begin(self, start: Start) -> None:
        """What was shown goes on where the new one cannot be."""
        scene = Scene(self._catalog[start.run], start)
        try:
            ready = scene.ready()
        except BaseException:
            scene.close()
            raise
        self._free()
        self._scene, self._last = scene, start
        self._threads.enter_context(scene.trial.threads())
        self.outbox.put(text_of(ready))
        self._restart_clock()
        self._send_frame()
        self._send_state()

    def _retarget(self, expression: str) -> None:
        scene = self._shown()
        if not self._going():
            raise HimatchError("these rollouts are over; start anew with this target")
        self.outbox.put(text_of(scene.retarget(expression)))
        self._restart_clock()
        self._send_state()
        if not self._going():  # the new target is shorter than what was played
            self._end(scene)

    def _shown(self) -> Scene:
        if self._scene is None:
            raise HimatchError("nothing is shown yet; send start")
        return self._scene

    def _rest(self) -> None:
        self._shown()
        self._paused = True
        self._send_state()

    def _play(self) -> None:
        self._shown()
        self._paused = False
        self._restart_clock()
        self._send_state()

    def _reset(self) -> None:
        if self._last is None:
            raise HimatchError("nothing is shown yet; send start")
        present = self._last.expression if self._scene is None else self._scene.expression
        steps = self._last.steps if self._scene is None or not self._scene.changes else None
        self._begin(self._last.model_copy(update={"expression": present, "steps": steps}))

    def _stop(self) -> None:
        self._free()
        self.outbox.put(text_of({"type": "stopped"}))

    def _free(self) -> None:
        self._threads.close()
        if self._scene is not None:
            self._scene.close()
            self._scene = None
            give_back()
        self.outbox.drop()

    # -- steps --------------------------------------------------------------------------------------------------

    def _advance(self) -> None:
        scene = self._shown()
        scene.step()
        now = time.perf_counter()
        self._due = max(self._due + scene.dt / self._speed, now - BEHIND)
        if now >= self._frame_at or scene.over:
            self._send_frame()
            self._frame_at = max(self._frame_at + 1.0 / FRAMES, now - 1.0 / FRAMES)
        if now >= self._state_at or scene.over:
            self._send_state()
            self._state_at = max(self._state_at + 1.0 / STATES, now)
        if scene.over:
            self._end(scene)

    def _end(self, scene: Scene) -> None:
        self.outbox.put(text_of(scene.end()))

    def _restart_clock(self) -> None:
        now = time.perf_counter()
        self._due = self._frame_at = self._state_at = now
        self._since = (now, 0 if self._scene is None else self._scene.made)

    def _send_frame(self) -> None:
        self.outbox.put(self._shown().frame(), latest="frame")

    def _send_state(self) -> None:
        if self._scene is None:
            return
        began, made = self._since
        rate = (self._scene.made - made) / max(1e-3, time.perf_counter() - began) if self._playing else 0.0
        state = self._scene.state() | {"paused": self._paused, "speed": self._speed, "rate": rate}
        self.outbox.put(text_of(state), latest="state")
