"""The embedded fleet: nodes that are namespaces of one Linux machine, to rehearse on."""
