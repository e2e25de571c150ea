"""Trust DSCP, map it, PFC on the lossless priority only; and keep that over reboots."""

from fabrictool import qos
from fabrictool.ops import converge

converge(name="QoS: DCBX by the host", room=qos.ROOM, aspect="dcbx")
converge(name="QoS: trust", room=qos.ROOM, aspect="trust")
converge(name="QoS: DSCP to priority", room=qos.ROOM, aspect="map")
converge(name="QoS: global pause", room=qos.ROOM, aspect="pause")
converge(name="QoS: PFC", room=qos.ROOM, aspect="pfc", _serial=True)
converge(name="QoS: priority to traffic class", room=qos.ROOM, aspect="tc")
converge(name="QoS: ECN", room=qos.ROOM, aspect="ecn")
converge(name="QoS: persistence", room=qos.ROOM, aspect="persist")
