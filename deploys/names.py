"""Host names that do not resolve to loopback, and the template that would undo it."""

from fabrictool import names
from fabrictool.ops import converge

converge(name="Names: cloud-init template", room=names.ROOM, aspect="template")
converge(name="Names: /etc/hosts", room=names.ROOM, aspect="hosts")
