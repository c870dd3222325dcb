"""Makes files for stratagem of PyTorch modules.

`module` prepares what the user's function returned, `graph` traces it, `quiet` runs the graph as stratagem does,
`check` compares it with the module, `first_loss` records numbers that stratagem must find again, and `file` writes.
"""


class ExportError(Exception):
    """What cannot be exported, and why."""
