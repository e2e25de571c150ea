"""The part of the lab that runs inside its nodes: Python standard library only, no import from the rest of the project."""
