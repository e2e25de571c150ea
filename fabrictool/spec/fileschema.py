"""JSON Schema (draft 7) of a spec *file*, for editors: what may stand at the site, in a group, at a node.

Kept plain, and looser than the loader: a range may stand for names, nothing is required below the first levels (a key can come
from another level), and what needs the whole file is left to `fabrictool lint`.
"""

from __future__ import annotations

from typing import Any

from fabrictool.spec.schema import NODE
from fabrictool.spec.sections import NODE_KEYS, VERSION

DRAFT = "http://json-schema.org/draft-07/schema#"
TEXTS = {
    "version": "Version of this file format.", "site": "Name of the site.",
    "groups": "Nodes that are alike. Each node is in one group.", "nodes": "What differs at single nodes, or at node[01-04].",
    "waves": "Node sets; each is applied before the next. Nodes that none names come last.",
    "ssh": "How nodes are reached.", "switches": "What is said of the switches: claims, never evidence.",
    "fabric": "MTU, traffic class, QoS and rails.", "gpu": "The GPUs of a node.", "ports": "Cages and their RDMA functions.",
    "other_rdma": "RDMA devices for other purposes: never touched.",
         "bootstrap": "The socket interface of NCCL, Gloo and host names.",
    "protected": "Interfaces that are never changed.", "env": "Environment of NCCL, Gloo and UCX.",
    "collective": "The AllReduce that proves the fabric.", "checkpoints": "Model files on the nodes.",
    "kernel_caches": "Compiled kernels on the nodes.",
    "versions": "Files whose content the check `versions` compares.",
    "memlock": "How much memory a consumer must be able to lock.", "kernel_log": "How the check `kernel_log` reads the kernel's log.",
    "simulated": "A lab: every report says so.",
}
NODE_SET = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}


def file_schema() -> dict[str, Any]:
    """The schema as plain JSON values."""
    raw = NODE.json_schema(ref_template="#/definitions/{model}")
    definitions = {k: _loose(v) for k, v in raw.get("$defs", {}).items()}
    node = {k: {**_loose(v), "description": TEXTS[k]} for k, v in raw["properties"].items() if k in NODE_KEYS}
    node = {k: {"allOf": [{"$ref": v.pop("$ref")}], **v} if "$ref" in v else v for k, v in node.items()}
    definitions["Node"] = {"type": "object", "properties": node, "additionalProperties": False}
    definitions["Group"] = {"type": "object", "additionalProperties": False, "required": ["nodes"],
                            "properties": {"nodes": {**NODE_SET, "description": "node[01-04], or a list."}, **node}}
    return {
        "$schema": DRAFT, "title": "fabrictool spec", "type": "object", "additionalProperties": False,
        "required": ["version", "site", "groups"],
        "properties": {
            "version": {"const": VERSION, "description": TEXTS["version"]},
            "site": {"type": "string", "description": TEXTS["site"]},
            "waves": {"type": "array", "items": NODE_SET, "description": TEXTS["waves"]},
            "groups": {"type": "object", "minProperties": 1, "additionalProperties": {"$ref": "#/definitions/Group"},
                       "description": TEXTS["groups"]},
            "nodes": {"anyOf": [{"type": "object",
                                 "additionalProperties": {"anyOf": [{"$ref": "#/definitions/Node"}, {"type": "null"}]}},
                                {"type": "null"}], "description": TEXTS["nodes"]},
            **node,
        },
        "definitions": definitions,
    }


def _loose(schema: Any) -> Any:
    """Without what ranges and merging make untrue: required keys, patterns of names; and without generated titles."""
    if isinstance(schema, list):
        return [_loose(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    out: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("required", "title", "propertyNames", "format", "default"):
            continue
        if key == "properties":
            out[key] = {k: _loose(v) for k, v in value.items()}
        elif key == "patternProperties":
            out["additionalProperties"] = _loose(next(iter(value.values())))
        elif key not in out:
            out[key] = _loose(value)
    return out
