"""NCCL, Gloo and UCX environment, in each place that the spec names."""

from fabrictool import env
from fabrictool.ops import converge

converge(name="Environment: /etc/nccl.conf", room=env.ROOM, aspect="nccl_conf")
converge(name="Environment: docker env-file", room=env.ROOM, aspect="docker_env")
converge(name="Environment: profile.d", room=env.ROOM, aspect="profile_d")
converge(name="Environment: systemd drop-ins", room=env.ROOM, aspect="systemd")
