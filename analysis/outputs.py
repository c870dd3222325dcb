"""What the scripts print, and the files that they name with -o."""

import io
import os
import sys

IO = 6  # the same exit code as that of `stratagem`


class Printer(io.TextIOWrapper):
    """Standard output that prints what its encoding lacks as \\xe4, and notes that something was not written. Whoever
    prints goes on: what else there is to do is done."""

    failed = None  # the error

    def write(self, text):
        try:
            return super().write(text)
        except OSError as problem:
            self.give_up(problem)
            return len(text)

    def flush(self):
        try:
            super().flush()
        except OSError as problem:
            self.give_up(problem)

    def give_up(self, problem):
        """Lets the rest, also what is buffered and what started programs print, go nowhere."""
        self.failed = self.failed or problem
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)


def printer():
    if sys.stdout is None:  # it is closed
        made = Printer(open(os.devnull, "wb"), encoding="utf-8")
        made.failed = OSError("closed")
        return made
    if not isinstance(sys.stdout, io.TextIOWrapper):  # who runs a script in a script has put it there
        return sys.stdout
    encoding, by_line = sys.stdout.encoding, sys.stdout.line_buffering
    return Printer(sys.stdout.detach(), encoding=encoding, errors="backslashreplace", line_buffering=by_line)


def run(name, main):
    """The exit code of main(), or 6 where standard output is incomplete. A reader that has seen enough is no error."""
    sys.stdout = printer()
    try:
        code = main()
    except SystemExit as ended:  # of argparse
        if isinstance(ended.code, str):
            raise
        code = ended.code
    sys.stdout.flush()
    failed = getattr(sys.stdout, "failed", None)
    if failed is None or isinstance(failed, BrokenPipeError):
        return code
    print(f"{name}: error: cannot write all of the output to stdout; it is incomplete", file=sys.stderr)
    return code or IO


def taken(path, is_own, own):
    """Why `path` is not written, or "". A link is followed; what `is_own` knows as an earlier output is replaced."""
    if not os.path.lexists(path):
        return ""
    if not path.is_file():
        return f"{path} is there already, and is no regular file: name another file"
    if not is_own(path):
        return f"{path} is there already, and is no {own}: name another file, or move that one away"
    return ""


def is_picture(path):
    """Whether matplotlib drew it."""
    return b"atplotlib" in path.read_bytes()
