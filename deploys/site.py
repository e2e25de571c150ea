"""Everything the spec asks of a node, in order, and then everything read back."""

from pathlib import Path

from pyinfra import local

from fabrictool.ops import verify

here = Path(__file__)
local.include(str(here.with_name("link.py")))
local.include(str(here.with_name("qos.py")))
local.include(str(here.with_name("env.py")))
local.include(str(here.with_name("names.py")))
verify(name="Read everything back")
