"""What the program told, before the report uses it. No measure is negative or beyond all sizes, and the parts of a
spread are in order; what is not so counts as not measured, and is named."""

import numbers

from .errors import BAD_DATA, ReportError

NOTHING = {"median": None, "least": None, "greatest": None, "n": 0}
CURVE = ("epoch", "time_s", "train_loss", "test_loss", "test_accuracy")
BEYOND_ALL = 1e30  # no measure is so large in its unit
BESIDE_MEASURES = ("steps",)  # numbers of a cell that groups do not have


def is_number(value):
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and 0 <= value < BEYOND_ALL


def is_spread(value):
    """Of at least one run, or of none."""
    if not isinstance(value, dict) or not is_number(value.get("n")):
        return False
    ends = [value.get(part) for part in ("least", "median", "greatest")]
    return ends == [None] * 3 if value["n"] == 0 else all(map(is_number, ends)) and ends == sorted(ends)


def by_name(rows, name):
    """{row[name]: row}; ReportError where these are no rows."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) and isinstance(row.get(name), str) for row in rows):
        why = f"`stratagem collect --format json` prints rows with a {name}; this has none: collect it again"
        raise ReportError(why, BAD_DATA)
    return {row[name]: dict(row) for row in rows}


class Told:
    """`cells` and `groups` by name, as `stratagem collect --format json` printed them, without what is not sound.
    `remarks` has (cell or group, text) for each of those. `message`: why there is nothing."""

    def __init__(self, found, message=""):
        self.message = message
        found = found if isinstance(found, dict) else {}
        self.cells, self.groups = by_name(found.get("cells"), "cell"), by_name(found.get("groups"), "group")
        self.measures = {name for row in self.groups.values() for name, value in row.items() if isinstance(value, dict)}
        self.remarks, self.spoiled = [], set()  # (group, measure)
        for cell, row in self.cells.items():
            self.check_numbers(cell, row)
            self.check_lists(cell, row)
        for group, row in self.groups.items():
            self.check_spreads(group, row)

    def check_numbers(self, cell, row):
        for name in sorted(self.measures | set(BESIDE_MEASURES)):
            if name not in row or not (row[name] is None or is_number(row[name])):
                told = f"is {row[name]!r}" if name in row else "is missing"
                self.remarks.append((cell, f"{name} {told}: it counts as not measured"))
                self.spoiled.add((row.get("group"), name))
                row[name] = None

    def check_lists(self, cell, row):
        curve, lags = row.get("curve", []), row.get("lag_counts", [])
        points = isinstance(curve, list) and all(isinstance(point, dict) for point in curve)
        if not points or not all(is_number(point.get("epoch")) for point in curve):
            self.remarks.append((cell, "its curve is none: it counts as not evaluated"))
            curve = []
        if not isinstance(lags, list) or not all(map(is_number, lags)):
            self.remarks.append((cell, "its lag_counts are none: its pushes count as none"))
            lags = []
        row["curve"] = [self.checked_point(cell, point) for point in curve]
        row["lag_counts"] = lags

    def checked_point(self, cell, point):
        odd = [name for name in CURVE if not (point.get(name) is None or is_number(point[name]))]
        self.remarks += [
            (cell, f"{name} of epoch {point['epoch']} is {point[name]!r}: it counts as not measured") for name in odd
        ]
        return {name: None if name in odd else point.get(name) for name in CURVE}

    def check_spreads(self, group, row):
        """A spread that an unsound number is in is none."""
        for name in sorted(self.measures):
            sound = is_spread(row.get(name))
            if not sound:
                self.remarks.append((group, f"the spread of {name} is {row.get(name)!r}: it counts as not measured"))
            if not sound or (group, name) in self.spoiled:
                row[name] = NOTHING
