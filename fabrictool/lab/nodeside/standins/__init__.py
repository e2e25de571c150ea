"""Stand-ins for tools that need hardware: `<tool>.run(argv, node_dir) -> exit status`, all views on one state model."""
