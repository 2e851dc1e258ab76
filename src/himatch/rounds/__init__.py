"""Online training: a policy goes on learning from its own rollouts, in rounds."""

from himatch.rounds.commands import commands_beyond
from himatch.rounds.loop import online

__all__ = ["commands_beyond", "online"]
