"""What a policy really does, found out in a simulator before it counts: temperature, repertoire, programs, promises."""

from himatch.rehearsal.arena import Arena
from himatch.rehearsal.logged import from_logs
from himatch.rehearsal.rehearsals import Kept, prepare
from himatch.rehearsal.repertoire import Repertoire
from himatch.rollout.expected import Expected

__all__ = ["Arena", "Expected", "Kept", "Repertoire", "from_logs", "prepare"]
