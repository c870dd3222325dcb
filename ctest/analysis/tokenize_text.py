"""analysis/tokenize_text.py: the files of tokens that it writes decode to the text, with all counts right; it refuses
what it cannot do, and then leaves no file."""

import array
import csv
import hashlib
import importlib.util
import json
import random
import re
import signal
import struct
import sys

import support
import harness

if importlib.util.find_spec("tokenizers") is None:
    print("SKIPPED: needs tokenizers")
    sys.exit(harness.SKIPPED)

import tokenize_text  # the script
import tokenizers
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

USAGE, ENVIRONMENT, BAD_DATA, IO = 2, 3, 5, 6
INTERRUPTED = 130
SCRIPT = support.ANALYSIS / "tokenize_text.py"
START = "<|endoftext|>"
WORDS = "in the beginning was a word and it was good für Ähren 木 🌲 12345 isn't <|endoftext|>".split()
WORDS += ["".join(random.Random(number).choices("aeiounrst", k=7)) for number in range(50)]
ENDS = ["\n", "\n", ".\n", "\n\n", " \n", "\n  ", "\r\n"]
BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())
LLAMA_3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
           r"|\s+(?!\S)|\s+")


def prose(lines, seed=1):
    """Text with what is hard about it; it ends with a line."""
    source = random.Random(seed)
    return "".join(" ".join(source.choices(WORDS, k=8)) + source.choice(ENDS) for _ in range(lines)).rstrip() + "\n"


def made_tokenizer(size=257, start=START, words=None):
    """Byte-level, with a merge in the token before the last; what is between has no use."""
    names = [*BYTES, *(f"unused {number}" for number in range(256, size - 2)), "th"][: size - 1]
    merges = [("t", "h")] if names[-1] == "th" else []
    tokenizer = Tokenizer(models.BPE({name: token for token, name in enumerate(names)}, merges))
    if start:
        tokenizer.add_special_tokens([start])
    tokenizer.pre_tokenizer = words or pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def read_shard(path):
    """Magic number, version and tokens."""
    content = path.read_bytes()
    magic, version, count, *rest = struct.unpack("<256i", content[:1024])
    assert not any(rest)
    tokens = array.array({20240520: "H", 20240801: "I"}[magic], content[1024:])
    assert len(tokens) == count
    return magic, version, tokens.tolist()


def documents_of(content, line):
    """As `--separator line` divides the bytes of a file."""
    found = [b""]
    for row in re.findall(rb"[^\n]*\n|[^\n]+", content):
        if row.removesuffix(b"\n").removesuffix(b"\r") == line and (line or row.endswith(b"\n")):
            found.append(b"")
        else:
            found[-1] += row
    return [document for document in found if document]


class TokenizeText(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        self.text = prose(400)
        self.folder = self.new_folder({"book.txt": self.text, "json": made_tokenizer(300).to_str()})
        self.tokens = self.folder / "tokens"

    def write(self, name, text):
        (self.folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return name

    def command(self, *words):
        return [sys.executable, "-B", SCRIPT, "tokens", *words]

    def tokenize(self, *words, code=0, environment=None):
        ended = self.wait(self.start(self.command(*words), environment=environment))
        self.assertEqual(ended.code, code, str(ended))
        return ended.stdout if code == 0 else ended.stderr

    def refused(self, code, told, *words, **how):
        """In one line, and without any change."""
        before = harness.snapshot(self.folder)
        message = self.tokenize(*words, code=code, **how)
        self.assertRegex(message, r"\Atokenize_text\.py: [^\n]*\n\Z")
        self.assertIn(told, message)
        self.assertEqual(harness.snapshot(self.folder), before)

    def again(self):
        """Tokenizes into a new folder the next time."""
        count = len(list(self.folder.glob("tokens-*")))
        return self.tokens.rename(self.folder / f"tokens-{count}")

    def shards(self, part):
        return [read_shard(path)[2] for path in sorted(self.tokens.glob(f"{part}_*"))]

    def read(self, part):
        return [token for shard in self.shards(part) for token in shard]

    def decoded(self, part):
        """The documents of a part."""
        tokenizer = Tokenizer.from_file(str(self.tokens / "tokenizer.json"))
        start, found = tokenizer.token_to_id(START), []
        for token in self.read(part):
            if token == start:
                found.append([])
            else:
                found[-1].append(token)
        return [tokenizer.decode(tokens, skip_special_tokens=False) for tokens in found]

    def check_decoded(self, train, val):
        """Documents of each part."""
        self.assertEqual((self.decoded("train"), self.decoded("val")), (train, val))

    def test_it_decodes_to_the_text_and_all_counts_are_right(self):
        self.write("other.txt", other := prose(30, seed=2))
        for words in ["--tokenizer", "json"], ["--train-vocabulary", "400"]:
            shown = self.tokenize(*words, "--shard-tokens", "700", "book.txt", "--val", "other.txt")
            self.check_decoded([self.text], [other])
            notes = json.loads((self.tokens / "tokens.json").read_text())
            vocabulary = 300 if words[0] == "--tokenizer" else 400
            content = (self.tokens / "tokenizer.json").read_bytes()
            self.assertEqual(notes, {
                "format": "stratagem tokens 1", "vocabulary": vocabulary,
                "tokenizer_sha256": hashlib.sha256(content).hexdigest(),
                "train": {"tokens": len(self.read("train")), "bytes": len(self.text.encode())},
                "val": {"tokens": len(self.read("val")), "bytes": len(other.encode())}})
            for part in "train", "val":
                paths = sorted(self.tokens.glob(f"{part}_*"))
                sizes = [len(shard) for shard in self.shards(part)]
                self.assertEqual([path.name for path in paths], [f"{part}_{i:06}.bin" for i in range(len(paths))])
                self.assertTrue(all(size == 700 for size in sizes[:-1]) and 0 < sizes[-1] <= 700)
                self.assertEqual({read_shard(path)[:2] for path in paths}, {(20240520, 1)})
                row = [f"{len(sizes):,}", "1", f"{sum(sizes):,}", f"{notes[part]['bytes']:,}"]
                self.assertRegex(shown, rf"(?m)^{part} +" + " +".join(row) + r" +\d\.\d\d$")
            self.assertGreater(len(self.shards("train")), 2)
            self.assertEqual(Tokenizer.from_str(content.decode()).get_vocab_size(), vocabulary)
            self.again()
        self.assertEqual((self.folder / "tokens-0/tokenizer.json").read_bytes(), (self.folder / "json").read_bytes())

    def test_a_full_last_file_is_not_followed_by_an_empty_one(self):
        self.write("even.txt", "abcdefg\n" * 5)  # a token per byte, and one that begins it
        self.tokenize("even.txt", "--tokenizer", "json", "--shard-tokens", "41", "--val", "book.txt")
        self.assertEqual([len(shard) for shard in self.shards("train")], [41])

    def test_tokens_have_16_bits_while_they_fit(self):
        for size, magic, version in (2**16, 20240520, 1), (2**16 + 1, 20240801, 7), (70000, 20240801, 7):
            tokenizer = made_tokenizer(size, words=pre_tokenizers.Sequence(
                [pre_tokenizers.Split(Regex(LLAMA_3), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)]))
            self.write("wide", tokenizer.to_str())
            shown = self.tokenize("book.txt", "--tokenizer", "wide")
            self.assertIn(f"a vocabulary of {size:,} tokens, of {16 if version == 1 else 32} bits each", shown)
            self.assertEqual(read_shard(self.tokens / "train_000000.bin")[:2], (magic, version))
            self.assertIn(size - 2, self.read("train"))
            self.assertEqual("".join(self.decoded("train") + self.decoded("val")), self.text)
            self.assertEqual(json.loads((self.tokens / "tokens.json").read_text())["vocabulary"], size)
            self.again()

    def test_pieces_of_a_long_text_have_the_tokens_of_the_whole(self):
        long = prose(20000)
        self.assertGreater(len(long.encode()), 4 * tokenize_text.PIECE)
        self.write("long.txt", long)
        llama = made_tokenizer(300, words=pre_tokenizers.Sequence(
            [pre_tokenizers.Split(Regex(LLAMA_3), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)]))
        self.tokenize("long.txt", "--train-vocabulary", "500", "--val", "book.txt")
        trained = Tokenizer.from_file(str(self.again() / "tokenizer.json"))
        for tokenizer in llama, trained:
            self.write("json", tokenizer.to_str())
            tokenizer.encode_special_tokens = True
            self.tokenize("long.txt", "--tokenizer", "json", "--val", "book.txt")
            whole = [tokenizer.token_to_id(START), *tokenizer.encode(long).ids]
            self.assertTrue(self.read("train") == whole)
            self.again()
            span = tokenize_text.Span(self.folder / "long.txt", 0, len(long.encode()))
            texts = [piece.text() for piece in tokenize_text.pieces([span], None, 3000)]
            self.assertGreater(len(texts), 300)
            self.assertTrue([token for found in tokenizer.encode_batch(texts) for token in found.ids] == whole[1:])

    def test_lines_longer_than_a_piece(self):
        size = tokenize_text.PIECE
        lines = ["x" * (size - 1) + "---", "木" * size, "a" + "ä" * size, "--- " + "x" * size, "word " * size,
                 "\n" * size]
        self.write("long.txt", "\n---\n".join(lines))
        self.tokenize("long.txt", "--tokenizer", "json", "--separator=---", "--val", "book.txt")
        for document, line in zip(self.decoded("train"), lines, strict=True):
            self.assertTrue(document in (line, line + "\n"))

    def test_separators_divide_whatever_the_pieces_are(self):
        source = random.Random(3)
        for _ in range(300):
            line = source.choice([b"---", b"", b"<|endoftext|>", b".*"])
            rows = [b"a", b"b c", b"--", b"----", b" ---", b"---\r", line, line, line + b"\r", b"", "ä木".encode()]
            content = b"\n".join(source.choices(rows, k=source.randrange(1, 40)))
            path = self.folder / self.write("text", content)
            found = []
            separator = tokenize_text.separating(line.decode())
            for piece in tokenize_text.pieces([tokenize_text.Span(path, 0, len(content))], separator, 32):
                self.assertEqual(piece.content, content[piece.at :][: len(piece.content)])
                piece.text()
                if piece.first:
                    found.append(b"")
                found[-1] += piece.content
            self.assertEqual(found, documents_of(content, line), (content, line))

    def test_the_last_documents_are_evaluated(self):
        texts = [f"This is number {number}\n" for number in range(12)]
        for number, text in enumerate(texts):
            self.write(f"{number:02}.txt", text)
        files = [f"{number:02}.txt" for number in range(12)]
        for share, kept in (0.1, 11), (0.25, 9), (0.001, 11), (0.99, 1):
            self.tokenize(*files, "--tokenizer", "json", "--holdout", str(share))
            self.check_decoded(texts[:kept], texts[kept:])
            self.again()
        for name, begin in ("a", 0), ("b", 7):
            self.write(name, "<>\n".join(texts[begin : begin + 7]))
        for share, kept in ([], 11), (["--holdout", "0.42"], 7), (["--holdout", "0.8"], 2):
            self.tokenize("a", "b", "--separator", "<>", "--tokenizer", "json", *share)
            self.check_decoded(texts[:kept], texts[kept:])
            self.again()

    def test_the_last_lines_are_evaluated(self):
        rows = [f"line {number:02}\n" for number in range(20)]
        self.write("a", "".join(rows[:10]))
        self.write("b", "".join(rows[10:]))
        whole = "".join(rows)
        for words, train, val in [
            (["a", "b"], [whole[:80], whole[80:144]], [whole[144:]]),
            (["a", "b", "--holdout", "0.11"], [whole[:80], whole[80:144]], [whole[144:]]),
            (["a", "b", "--holdout", "0.501"], [whole[:80]], [whole[80:]]),
            (["a", "b", "--holdout", "0.5"], [whole[:80]], [whole[80:]]),
            (["a", "b", "--holdout", "0.51"], [whole[:80]], [whole[80:]]),
            (["a", "b", "--holdout", "0.9999"], [whole[:8]], [whole[8:80], whole[80:]]),
            (["a", "b", "--holdout", "0.0001"], [whole[:80], whole[80:152]], [whole[152:]]),
        ]:
            self.tokenize(*words, "--tokenizer", "json")
            self.check_decoded(train, val)
            self.again()
        self.write("one", "a single line")
        self.refused(BAD_DATA, "one is a single line, of which no part can be kept to evaluate: name a file with --val",
                     "one", "--tokenizer", "json")
        self.tokenize("a", "one", "--tokenizer", "json")
        self.check_decoded([whole[:80]], ["a single line"])

    def test_the_same_text_makes_the_same_files(self):
        made = []
        for _ in range(3):
            self.tokenize("book.txt", "--train-vocabulary", "420")
            made.append({path.name: path.read_bytes() for path in self.again().iterdir()})
        self.assertEqual(sorted(made[0]), ["tokenizer.bin", "tokenizer.json", "tokens.json", "train_000000.bin",
                                            "val_000000.bin"])
        self.assertEqual(made, [made[0]] * 3)

    def test_the_text_to_evaluate_does_not_train_the_tokenizer(self):
        made = []
        for number in range(2):
            self.write("val.txt", f"quite another text {number}\n" * 50)
            self.tokenize("book.txt", "--train-vocabulary", "420", "--val", "val.txt")
            made.append((self.again() / "tokenizer.json").read_bytes())
        self.assertEqual(made[0], made[1])

    def test_a_text_that_spells_a_special_token_does_not_get_it(self):
        self.tokenize("book.txt", "--tokenizer", "json")
        self.assertIn(START, self.text)
        self.assertEqual(self.read("train").count(299), 1)

    def test_another_token_begins_documents_or_none(self):
        for start, begins in ("<|begin_of_text|>", True), (None, False):
            tokenizer = made_tokenizer(300, start)
            tokenizer.enable_truncation(10)
            tokenizer.enable_padding(length=100)
            self.write("json", tokenizer.to_str())
            shown = self.tokenize("book.txt", "--tokenizer", "json")
            self.assertEqual("note: json has neither" in shown, not begins)
            tokens = self.read("train") + self.read("val")
            self.assertEqual([i for i, token in enumerate(tokens) if token == 299],
                             [0, len(self.read("train"))] if begins else [])
            self.assertEqual(tokenizer.decode(tokens), self.text)
            self.again()

    def test_tokens_stand_for_the_bytes_of_the_text(self):
        self.tokenize("book.txt", "--train-vocabulary", "400")
        content = (self.tokens / "tokenizer.bin").read_bytes()
        magic, version, count, start = struct.unpack("<4I", content[:16])
        self.assertEqual((magic, version, count), (20240328, 2, 400))
        stand_for, at = [], 1024
        while at < len(content):
            stand_for.append(content[at + 1 : at + 1 + content[at]])
            at += 1 + content[at]
        self.assertEqual((len(stand_for), stand_for[start]), (400, START.encode()))
        tokens = self.read("train") + self.read("val")
        self.assertEqual(b"".join(stand_for[token] for token in tokens if token != start).decode(), self.text)

    def test_the_program_reads_them(self):
        self.tokenize("book.txt", "--train-vocabulary", "400", "--shard-tokens", "900")
        notes = json.loads((self.tokens / "tokens.json").read_text())
        rows = csv.DictReader(self.expect(0, "data", "stats", "tokens", "--format", "csv").stdout.splitlines())
        for row, part in zip(rows, ("train", "val"), strict=True):
            tokens = notes[part]["tokens"]
            self.assertEqual((row["part"], row["files"]), (part, f"{-(-tokens // 900)}"))
            self.assertEqual((row["tokens"], row["vocabulary"]), (str(tokens), "400"))
        self.assertEqual(row["bytes per token"], f"{notes['val']['bytes'] / tokens:.2f}")

    def test_nothing_is_overwritten(self):
        self.tokenize("book.txt", "--tokenizer", "json")
        self.refused(USAGE, "tokens holds tokenizer.bin already", "book.txt", "--tokenizer", "json")
        self.again()
        self.write("tokens", "")
        self.refused(USAGE, "tokens is not a folder", "book.txt", "--tokenizer", "json")
        self.tokens.unlink()
        self.tokens.mkdir()
        self.tokenize("book.txt", "--tokenizer", "json")

    def test_bad_texts_are_named(self):
        size = tokenize_text.PIECE
        (self.folder / "folder").mkdir()
        self.write("empty.txt", "")
        self.write("lines.txt", "--\n" * 9)
        self.write("latin.txt", prose(5).encode() + "für".encode("latin-1"))
        self.write("late.txt", b"x" * 100 + b"\n" + b"y" * 2 * size + b"\xff\n" + b"z" * size)
        self.write("cut.txt", b"x" * (size + 1) + "木".encode()[:2])
        for name, told in [
            ("none.txt", "none.txt cannot be read: No such file or directory"),
            ("folder", "folder is not a file"),
            ("/dev/null", "/dev/null is not a file: text is read more than once"),
            ("empty.txt", "empty.txt holds no text"),
            ("lines.txt", "lines.txt holds no text"),
            ("latin.txt", f"latin.txt is not UTF-8 at byte {len(prose(5).encode()) + 1}: "),
            ("late.txt", f"late.txt is not UTF-8 at byte {101 + 2 * size}: "),
            ("cut.txt", f"cut.txt is not UTF-8 at byte {size + 1}: "),
        ]:
            for words in ["book.txt", name], ["book.txt", "--val", name]:
                with self.subTest(name, words=words):
                    self.refused(BAD_DATA, told, "--tokenizer", "json", "--separator=--", *words)

    def test_too_little_text(self):
        self.refused(BAD_DATA, "repeats too little for --train-vocabulary 5000: give ", "book.txt",
                     "--train-vocabulary", "5000")
        self.refused(BAD_DATA, "give 257 or less", self.write("once.txt", "abcd\nefgh\n"), "--train-vocabulary", "258")
        told = self.tokenize("book.txt", "--train-vocabulary", "5000", code=BAD_DATA)
        self.tokenize("book.txt", "--train-vocabulary", re.search(r"give (\d+) or less", told)[1])
        self.again()
        self.write("json", made_tokenizer(300, None).to_str())
        self.refused(BAD_DATA, "the text of val makes 1 tokens, must be 2 or more", "book.txt", "--tokenizer", "json",
                     "--val", self.write("x", "x"))

    def test_bad_tokenizers_are_named(self):
        lower = made_tokenizer()
        lower.normalizer = normalizers.Lowercase()
        for name, content, told in [
            ("none.json", None, "none.json cannot be read: No such file or directory"),
            ("text.json", "hello", f"text.json is no tokenizer.json that tokenizers {tokenizers.__version__} can read"),
            ("bytes.json", b"\xff", "bytes.json is no tokenizer.json"),
            ("lower.json", lower.to_str(), "lossy.txt cannot be decoded from its tokens again, first at byte 8:"
                                           " lower.json loses text"),
            ("words.json", Tokenizer(models.WordLevel({"a": 0}, "b")).to_str(), "lossy.txt cannot be encoded with"),
            ("empty.json", Tokenizer(models.BPE()).to_str(), "lossy.txt cannot be decoded from its tokens again"),
        ]:
            with self.subTest(name):
                if content is not None:
                    self.write(name, content)
                self.write("lossy.txt", "für ä Word\nand more\n")
                self.refused(BAD_DATA, told, "lossy.txt", "--tokenizer", name)

    def test_bad_options(self):
        for told, *words in [
            ("--train-vocabulary 256: must be 257 or more", "book.txt", "--train-vocabulary", "256"),
            ("--shard-tokens 2147483648: at most 2,147,483,647", "book.txt", "--tokenizer", "json", "--shard-tokens",
             "2147483648"),
            ("--separator must be one line", "book.txt", "--tokenizer", "json", "--separator", "a\nb"),
            ("book.txt is to train on and to evaluate", "book.txt", "--tokenizer", "json", "--val", "./book.txt"),
        ]:
            with self.subTest(told):
                self.refused(USAGE, told, *words)
        before = harness.snapshot(self.folder)
        for words in [["book.txt"], ["book.txt", "--tokenizer", "json", "--train-vocabulary", "300"],
                      ["book.txt", "--tokenizer", "json", "--holdout", "1"],
                      ["book.txt", "--tokenizer", "json", "--holdout", "0.1", "--val", "json"]]:
            self.assertIn("usage: tokenize_text.py", self.tokenize(*words, code=USAGE))
        self.assertEqual(harness.snapshot(self.folder), before)

    def test_a_full_disk_leaves_no_file(self):
        before = harness.snapshot(self.folder)
        words = ["sh", "-c", 'ulimit -f 10; exec "$@"', "sh", *self.command("book.txt", "--tokenizer", "json")]
        ended = self.wait(self.start(words))
        self.assertEqual(ended.code, IO, str(ended))
        self.assertRegex(ended.stderr, r"\Atokenize_text\.py: tokens cannot be written: .*File too large.*\n\Z")
        self.assertEqual(harness.snapshot(self.folder), before)

    def test_an_interrupt_leaves_no_file(self):
        self.write("long.txt", self.text * 1000)
        before = harness.snapshot(self.folder)
        for sent in signal.SIGINT, signal.SIGTERM:
            process = self.start(self.command("long.txt", "--tokenizer", "json"))
            self.assertTrue(harness.comes_true(lambda: list(self.folder.glob("tokens/.*/train_*"))))
            process.send_signal(sent)
            ended = self.wait(process)
            self.assertEqual((ended.code, ended.stdout, ended.stderr),
                             (INTERRUPTED, "", "tokenize_text.py: interrupted; no file is left\n"))
            self.assertEqual(harness.snapshot(self.folder), before)

    def test_a_missing_package_is_named(self):
        self.refused(ENVIRONMENT, "lacks tokenizers", "book.txt", "--tokenizer", "json",
                     environment={"PYTHONPATH": "", "PYTHONNOUSERSITE": "1"})


if __name__ == "__main__":
    harness.main()
