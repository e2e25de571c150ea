"""MTU of the fabric interfaces: running and persisted."""

from fabrictool import link
from fabrictool.ops import converge

converge(name="Link: persisted MTU", room=link.ROOM, aspect="persisted")
converge(name="Link: running MTU", room=link.ROOM, aspect="running", _serial=True)
