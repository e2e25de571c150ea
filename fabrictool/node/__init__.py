"""What runs on nodes: POSIX sh (and nothing that a node might lack). Read as text, never imported."""
