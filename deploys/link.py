"""MTU of the fabric interfaces: running and persisted.

The running one first: where NetworkManager keeps the MTU, applying its profile again then changes nothing that runs.
"""

from fabrictool import link
from fabrictool.ops import converge

converge(name="Link: running MTU", room=link.ROOM, aspect="running", _serial=True)
converge(name="Link: persisted MTU", room=link.ROOM, aspect="persisted")
