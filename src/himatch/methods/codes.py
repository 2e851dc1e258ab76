"""Which target states a learned code sees, in training and at run time: the choices ``codes`` of BDT and DT-X.

==============  ================================================  =============================================
codes           training                                          run time, step t
==============  ================================================  =============================================
``look-ahead``  one, of a window that starts after the present    one, of the window that starts at t
``pseudocode``  one a step: at position j of the window's own N   the same of the target's last N states up to t
                states the last j + 1
``public``      the same                                          the same of the target's states t ... t + N - 1
==============  ================================================  =============================================

``pseudocode`` is the paper's appendix, ``public`` the authors' code. Both read their states last to first and do not
flip the codes back, so in training the code of a window's first step has seen the window's last state, and that of its
last step the whole window, of which nothing lies ahead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from himatch.methods.batch import BatchSpec

CodesName = Literal["look-ahead", "pseudocode", "public"]


class Codes(NamedTuple):
    """One choice.

    ``per_step``: a code for every step of the context, made from as many states; else one for the whole context, of a
    target window that has its own size. ``ahead``: at run time the target's states from the present on; else those up
    to it. ``timed``: BDT's second transformer reads time steps, behind a LayerNorm; else places in its window.
    """

    per_step: bool
    ahead: bool
    timed: bool = False

    def batch_spec(self, context: int, target_window: int, look_ahead: int) -> BatchSpec:
        """Windows with the target states that their codes are made from."""
        if not self.per_step:
            return BatchSpec(context, target_window, look_ahead)
        own = 1 - context  # from the window's first step to its last
        return BatchSpec(context, context, target_start=own, rollout_start=0 if self.ahead else own)


CODES: Mapping[CodesName, Codes] = {
    "look-ahead": Codes(per_step=False, ahead=True),
    "pseudocode": Codes(per_step=True, ahead=False),
    "public": Codes(per_step=True, ahead=True, timed=True),
}
