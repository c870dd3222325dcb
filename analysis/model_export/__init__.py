"""Makes files for stratagem of PyTorch modules.

`module` prepares what the user's function returned, `graph` traces it, `buffers` tells what the graph writes, `quiet`
runs it as stratagem does, `check` compares it with the module, `first_loss` records numbers that stratagem must find
again, and `file` writes.
"""


class ExportError(Exception):
    """What cannot be exported, and why; `code` is one of the exit codes of `stratagem`."""

    def __init__(self, message, code=2):
        super().__init__(message)
        self.code = code
