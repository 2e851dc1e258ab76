"""What a policy really does, found out in a simulator before it counts: temperature, repertoire, programs, promises."""

from himatch.rehearsal.arena import Arena
from himatch.rehearsal.promise import Expected
from himatch.rehearsal.rehearsals import Kept, prepare
from himatch.rehearsal.repertoire import Repertoire

__all__ = ["Arena", "Expected", "Kept", "Repertoire", "prepare"]
