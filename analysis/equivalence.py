"""Whether two ways of training are equally good, from pairs of results with the same seeds."""

import math
import statistics

# Student's t that one side exceeds with probability 0.05, by degrees of freedom.
T_95 = {1: 6.314, 2: 2.920, 3: 2.353, 4: 2.132, 5: 2.015, 6: 1.943, 7: 1.895, 8: 1.860, 9: 1.833}


def interval(ours, theirs):
    """Bounds of the mean difference; each is exceeded with probability 0.05."""
    differences = [one - other for one, other in zip(ours, theirs)]
    middle = statistics.fmean(differences)
    reach = T_95.get(len(differences) - 1, 1.8) * statistics.stdev(differences) / math.sqrt(len(differences))
    return middle - reach, middle + reach


def verdict(ours, theirs, margin):
    """Result of two one-sided tests: is the mean difference within `margin`?"""
    if len(ours) < 2:
        return "one seed"
    least, most = interval(ours, theirs)
    if least > 0:
        return "better"
    if most < 0 and least <= -margin:
        return "worse"
    if least > -margin:
        return "within" if most < margin else "not worse"
    return "open"
