"""The spec: one YAML file, merged site -> group -> node, validated strictly. Schema types are re-exported."""

from fabrictool.spec.schema import (
    CheckpointSpec,
    CollectiveSpec,
    EnvSpec,
    FabricSpec,
    FunctionSpec,
    GpuSpec,
    KernelCacheSpec,
    NodeSpec,
    PortSpec,
    QosSpec,
    RailSpec,
    SshSpec,
    SwitchSpec,
)

__all__ = [
    "CheckpointSpec", "CollectiveSpec", "EnvSpec", "FabricSpec", "FunctionSpec", "GpuSpec", "KernelCacheSpec",
    "NodeSpec", "PortSpec", "QosSpec", "RailSpec", "SshSpec", "SwitchSpec",
]
