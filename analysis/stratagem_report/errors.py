"""Errors that a user can cause."""


class ReportError(Exception):
    """Ends the program with a message and `code`, one of the exit codes of `stratagem`."""

    def __init__(self, message, code=2):
        super().__init__(message)
        self.code = code


UNEXPECTED, USAGE, BAD_DATA, IO = 1, 2, 5, 6
