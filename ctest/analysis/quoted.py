"""Shared by the tests of what sentences quote: the recorded data, the tables printed from it, and the search for
figures that nothing is compared with."""

import csv
import json
import re
import unittest

import support
import recorded  # of analysis/

PS, RESULTS = "analysis/PS.md", "analysis/bench/RESULTS.md"
FINDINGS = "analysis/published/FINDINGS.md"

NOT_SENTENCES = re.compile(
    r"<!-- recorded:.*?<!-- end of recorded -->|^```.*?^ *```$|^ *\|.*?$|<!--.*?-->", re.DOTALL | re.MULTILINE
)
# A figure: a number with decimals, and any before these words. Versions have no digits around their only point.
FIGURE = re.compile(r"(?<![\w.,-])-?\d[\d,]*(?:\.\d+)?(?= %| points?\b| times\b)|(?<![\w.])-?\d+\.\d+(?![\w.]*\.\d)")
SETTINGS = (  # and these are settings, definitions and versions
    r"(?:[Mm]omentum|momenta)(?: is| of| \d,|,)* \d\.\d+(?: (?:and|or) \d\.\d+)?",
    r"learning rate \d\.\d+",
    r"the study's rate and momentum \(0\.01 and 0\.9\)",
    r"with 0\.5 or 0\.9|momentum 0, 0\.5 and 0\.9|The grid has no 0\.5",
    r"at most 5 % of tables without any difference",
    r"steps vary by 10 %",
    r"that loses at most 2 points",
    r"needs about as long to 95 %",
    r"seeds reach 90 %",
    r"an update four times as large|makes? four times as many|three times",
    r"(?:CUDA|Open MPI|arXiv|abs/|Apache-) ?\d+(?:\.\d+)+",
    r"\d+\.\d+ GHz",
)


def data_of(name):
    return json.loads((support.ANALYSIS / f"{name}.json").read_text(encoding="utf-8"))


def rows_of(name):
    return data_of(f"bench/data/{name}")["rows"]


def sentences_of(document):
    """Its text without tables, code and comments, on one line."""
    return " ".join(NOT_SENTENCES.sub("", support.text_of(document)).split())


def table_of(document, data):
    """The rows of the table that is printed from a file of data, as texts by title."""
    (block,) = (found for found in recorded.BLOCK.finditer(support.text_of(document)) if data in found["command"])
    return support.rows_of(block["table"])


def modes_of(data):
    """The rows of a table of server modes in PS.md: {(workers, mode): row}."""
    return {(row["W"], row["mode"]): row for row in table_of(PS, f"data/{data}.json")}


def accuracy(row):
    return float(row["accuracy %"].split()[0])


def moved(row):
    """Accuracy with the rate and momentum that are best for the fewest workers."""
    (title,) = (title for title in row if title.startswith("at the lr for"))
    return float(row[title])


def lost(row):
    """Points below the baseline."""
    return -float(row["difference"].split()[0])


def interval(row):
    low, high = re.search(r"\[(.*), (.*)\]", row["difference"]).groups()
    return float(low), float(high)


def verdict_of(row):
    """Its verdict, and the margin that the title tells."""
    (title,) = (title for title in row if title.startswith("verdict"))
    return row[title], title.rsplit(maxsplit=1)[1]


def gained(row):
    return float(row["gained in the last quarter"])


def pushes_of(name, workers):
    """Of one worker, in a whole training."""
    settings = data_of(f"data/{name}")["settings"]
    return round(settings["subset"] * settings["epochs"] / settings["batch"] / workers)


def seeds_of(name, mode):
    """Accuracies of the scored trainings of a mode, in percent."""
    trainings = data_of(f"data/{name}")["trainings"]
    of_mode = (one for one in trainings if one["training"]["mode"] == mode and one["training"]["seed"] < 1001)
    return sorted(100 * one["result"]["test_accuracy"] for one in of_mode)


def published(strategy, *models):
    """Accuracies in percent that the study's table T4 has, in the order of its rows."""
    with (support.ANALYSIS / "published/accuracy_pct.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["table"] == "T4"]
    return [float(row["value"]) for row in rows if row["strategy"] in strategy and row["model"] in models]


class Sentences(unittest.TestCase):
    def check(self, document, *quoted):
        text = " ".join(support.text_of(document).split())
        for words in quoted:
            self.assertTrue(words in text, f"{document} does not say: {words}")

    def check_all(self, document, *quoted):
        """And that no other sentence of the document has a figure."""
        self.check(document, *quoted)
        left = unchecked(sentences_of(document), quoted)
        self.assertEqual(left, [], f"{document}: figures in sentences that no test compares with their data")


def unchecked(text, quoted):
    """The figures of a text that are neither quoted nor settings, with the words around."""
    for words in quoted:
        text = text.replace(words, "")
    for words in SETTINGS:
        text = re.sub(words, "", text)
    return [text[max(0, found.start() - 60) : found.end() + 20] for found in FIGURE.finditer(text)]
