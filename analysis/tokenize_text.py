#!/usr/bin/env python3
"""Turns text into files of tokens, which stratagem and llm.c read: `data: {path: tokens}`.

  analysis/tokenize_text.py tokens --train-vocabulary 8192 books/*.txt          with a vocabulary made of the text
  analysis/tokenize_text.py tokens --tokenizer tokenizer.json books/*.txt       with one that is given, such as GPT-2's

tokens/ then holds train_000000.bin, ..., val_000000.bin, ..., tokenizer.json, tokenizer.bin, from which `stratagem
sample` shows tokens, and tokens.json, which counts tokens and bytes. Each file is a document; with --separator
'<|endoftext|>' lines of a file that equal it divide it into documents. A document begins with the token <|endoftext|>,
if the tokenizer has it. Without --val, the end of the text is kept to evaluate: documents if there are 10 or more,
otherwise lines. Texts may be larger than the memory. Tokens are decoded again and compared with the text; where
anything is wrong, no file is left. Needs the package tokenizers.
"""

import argparse
import array
import concurrent.futures
import contextlib
import dataclasses
import hashlib
import importlib.util
import json
import mmap
import os
import pathlib
import re
import shlex
import signal
import struct
import sys
import threading
import time

import outputs
import pack_images
from pack_images import ENVIRONMENT, INTERRUPTED, IO, USAGE, PackError, positive

STARTS = ("<|endoftext|>", "<|begin_of_text|>")  # of a document; the first that the tokenizer has
HEADER = 256  # int32 before the tokens
MOST_TOKENS = 2**31 - 1  # of a file: its header counts them in an int32
MOST_FILES = 10**6  # of a part, so that their names have 6 digits
FEWEST_TOKENS = 2  # of a part: one to read and one to predict
SMALLEST_VOCABULARY = 257  # all bytes and <|endoftext|>
DOCUMENTS = 10  # with fewer, lines are kept to evaluate
PIECE = 2**18  # bytes that are read and encoded as a whole
BATCH = 2**22  # bytes that are encoded together; meanwhile they take up to 100 times as much
DOCUMENT = 256  # bytes of a batch that a piece counts for besides its text
TRIES = 1000  # line ends that are considered for a cut


@dataclasses.dataclass(frozen=True)
class Text:
    """A file, and how many documents are in it."""
    path: pathlib.Path
    size: int
    documents: int


@dataclasses.dataclass(frozen=True)
class Span:
    """A part of a file, in bytes; it begins at a line."""
    path: pathlib.Path
    begin: int
    end: int


@dataclasses.dataclass(frozen=True)
class Piece:
    """Bytes of one document, at a position in its file."""
    path: pathlib.Path
    at: int
    content: bytes
    first: bool  # of its document

    def text(self):
        try:
            return self.content.decode()
        except UnicodeDecodeError as problem:
            raise PackError(f"{self.path} is not UTF-8 at byte {self.at + problem.start}: convert it, for example with"
                            " iconv") from None


@dataclasses.dataclass(frozen=True)
class Coder:
    name: str  # of the tokenizer, for messages
    tokenizer: object
    content: bytes  # of tokenizer.json
    vocabulary: int  # tokens are less than this
    start: int  # the token before a document; None where it has none

    @property
    def layout(self):
        """Magic number, version, type code of a token: llm.c's for GPT-2 and for Llama 3."""
        return (20240520, 1, "H") if self.vocabulary <= 2**16 else (20240801, 7, "I")


class Progress(pack_images.Progress):
    """In bytes."""

    def __init__(self, doing, spans):
        super().__init__(doing, sum(span.end - span.begin for span in spans))
        self.shown = 0

    def add(self, count):
        self.done += count
        if time.monotonic() > self.shown + 0.1:
            self.shown = time.monotonic()
            self.show(f"{self.part}: {self.done / 2**20:,.1f} of {self.images / 2**20:,.1f} MiB")


class Shards:
    """Files of a part, each with `most` tokens but for the last."""

    def __init__(self, folder, part, layout, most):
        self.folder, self.part, self.most = folder, part, most
        self.magic, self.version, self.code = layout
        self.file, self.files, self.held, self.tokens = None, 0, 0, 0

    def add(self, tokens):
        self.tokens += len(tokens)
        at = 0
        while at < len(tokens):
            if self.file is None:
                self.open()
            some = tokens[at : at + self.most - self.held]
            at += len(some)
            packed = array.array(self.code, some)
            if sys.byteorder == "big":
                packed.byteswap()
            self.file.write(packed)
            self.held += len(some)
            if self.held == self.most:
                self.close()

    def open(self):
        if self.files == MOST_FILES:
            raise PackError(f"more than {MOST_FILES:,} files of --shard-tokens {self.most}: give more", USAGE)
        self.file = open(self.folder / f"{self.part}_{self.files:06}.bin", "wb")
        self.file.write(bytes(4 * HEADER))
        self.files, self.held = self.files + 1, 0

    def close(self):
        """The header comes last, since it counts the tokens."""
        file, self.file = self.file, None
        with file:
            file.seek(0)
            file.write(struct.pack("<3i", self.magic, self.version, self.held))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.file is not None and kind is None:
            self.close()
        elif self.file is not None:
            with contextlib.suppress(OSError):
                self.file.close()


def fraction(text):
    if not 0 < (number := float(text)) < 1:
        raise ValueError
    return number


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=pathlib.Path, metavar="OUT", help="folder to write into; new or empty")
    parser.add_argument("files", type=pathlib.Path, nargs="+", metavar="FILE", help="text in UTF-8")
    tokenizer = parser.add_mutually_exclusive_group(required=True)
    tokenizer.add_argument("--tokenizer", type=pathlib.Path, metavar="JSON",
                           help="tokenizer.json of Hugging Face's tokenizers")
    tokenizer.add_argument("--train-vocabulary", type=positive, metavar="N",
                           help="make a byte-level BPE tokenizer of N tokens from the text to train on")
    evaluated = parser.add_mutually_exclusive_group()
    evaluated.add_argument("--holdout", type=fraction, default=0.1, metavar="F",
                           help="fraction of the text to evaluate, from its end; default 0.1")
    evaluated.add_argument("--val", type=pathlib.Path, nargs="+", default=[], metavar="FILE",
                           help="text to evaluate instead; after OUT and FILE")
    parser.add_argument("--separator", metavar="LINE",
                        help="lines equal to this are between documents; --separator=--- if it begins with a dash")
    parser.add_argument("--shard-tokens", type=positive, default=10**8, metavar="N",
                        help="tokens per file; default 100,000,000")
    options = parser.parse_args()
    if options.separator == []:  # what Python before 3.13 makes of it
        options.separator = "--"
    return options


def check(options):
    if not importlib.util.find_spec("tokenizers"):
        raise PackError(f"{sys.executable} lacks tokenizers: `{sys.executable} -m pip install tokenizers`", ENVIRONMENT)
    if options.train_vocabulary and options.train_vocabulary < SMALLEST_VOCABULARY:
        raise PackError(f"--train-vocabulary {options.train_vocabulary}: must be {SMALLEST_VOCABULARY} or more, for all"
                        f" bytes and {STARTS[0]}", USAGE)
    if options.shard_tokens > MOST_TOKENS:
        raise PackError(f"--shard-tokens {options.shard_tokens}: at most {MOST_TOKENS:,}, which the header of a file"
                        " can count", USAGE)
    if options.separator and ("\n" in options.separator or "\r" in options.separator):
        raise PackError("--separator must be one line", USAGE)
    if options.output.exists() and not options.output.is_dir():
        raise PackError(f"{options.output} is not a folder", USAGE)
    there = sorted(path.name for path in options.output.glob("*") if not path.name.startswith("."))
    if there:
        raise PackError(f"{options.output} holds {there[0]} already: name another folder, or empty it", USAGE)
    trained = {path.resolve() for path in options.files}
    for path in options.val:
        if path.resolve() in trained:
            raise PackError(f"{path} is to train on and to evaluate: name it once", USAGE)


def size_of(path):
    try:
        size = path.stat().st_size
    except OSError as problem:
        raise PackError(f"{path} cannot be read: {problem.strerror}") from None
    if not path.is_file():
        raise PackError(f"{path} is not a file: text is read more than once, so it must be stored in files")
    return size


def place_to_cut(held):
    """Behind a line; if possible one that does not end with a space, before one that does not begin with one: GPT-2 and
    Llama 3 have no token across it, so that the tokens are those of the whole text. In a line without an end, before a
    word of its second half, or at least before a letter."""
    at = len(held) - 1
    for _ in range(TRIES):
        at = held.rfind(b"\n", 1, at)
        if at < 0:
            break
        if not held[at - 1 : at].isspace() and not held[at + 1 : at + 2].isspace():
            return at + 1
    if (at := held.rfind(b"\n") + 1) > 0 or (at := held.rfind(b" ", len(held) // 2)) > 0:
        return at
    at = len(held) - 1
    while at > max(1, len(held) - 4) and held[at] & 0xC0 == 0x80:  # within a letter
        at -= 1
    return at


def blocks(span, size):
    """(position, bytes) of about `size`, which end behind a line unless it is longer than that."""
    try:
        with open(span.path, "rb") as file:
            file.seek(span.begin)
            at, left, held = span.begin, span.end - span.begin, b""
            while left > 0:
                if not (read := file.read(min(size, left))):
                    raise PackError(f"{span.path} became shorter while it was read: try again")
                left -= len(read)
                held += read
                cut = place_to_cut(held) if left > 0 else len(held)
                yield at, held[:cut]
                at, held = at + cut, held[cut:]
    except OSError as problem:
        raise PackError(f"{span.path} cannot be read: {problem.strerror}") from None


def divided(block, separator, within_line):
    """(begin, end, whether a separator follows) of what is between separators."""
    begin = 0
    for found in separator.finditer(block) if separator else ():
        if not (within_line and found.start() == 0):
            yield begin, found.start(), True
            begin = found.end()
    yield begin, len(block), False


def pieces(spans, separator, size=PIECE):
    """All text, in pieces of one document each. There are no empty documents."""
    for span in spans:
        first, within_line = True, False
        for at, block in blocks(span, size):
            for begin, end, separated in divided(block, separator, within_line):
                if end > begin:
                    yield Piece(span.path, at + begin, block[begin:end], first)
                    first = False
                first |= separated
            within_line = not block.endswith(b"\n")


def separating(line):
    """The expression of such lines."""
    if line is None:
        return None
    try:
        line = re.escape(line.encode())
    except UnicodeEncodeError:
        raise PackError("--separator is not UTF-8", USAGE) from None
    return re.compile(rb"^%b(?:\r?\n|\r?\Z)" % line if line else rb"^\r?\n", re.MULTILINE)


def whole(texts):
    return [Span(text.path, 0, text.size) for text in texts]


def surveyed(paths, separator):
    """The texts; all of them can be read, are UTF-8 and not empty."""
    texts = []
    spans = [Span(path, 0, size_of(path)) for path in paths]
    with Progress("reading", spans) as progress:
        for span in spans:
            documents = 0
            for piece in pieces([span], separator):
                piece.text()
                documents += piece.first
                progress.add(len(piece.content))
            if documents == 0:
                raise PackError(f"{span.path} holds no text: leave it out")
            texts.append(Text(span.path, span.end, documents))
    return texts


def parted(texts, number, at):
    """The spans before and behind a position in one of the texts."""
    middle = texts[number]
    before = [*whole(texts[:number]), Span(middle.path, 0, at)]
    behind = [Span(middle.path, at, middle.size), *whole(texts[number + 1 :])]
    return [[span for span in spans if span.begin < span.end] for spans in (before, behind)]


def by_documents(texts, separator, kept):
    """Parted behind so many documents."""
    number = 0
    while kept >= texts[number].documents:
        kept -= texts[number].documents
        number += 1
    begins = (piece.at for piece in pieces(whole(texts[number : number + 1]), separator) if piece.first)
    return parted(texts, number, 0 if kept == 0 else next(at for i, at in enumerate(begins) if i == kept))


def by_lines(texts, kept):
    """Parted behind so many bytes, or behind the line that ends next; or else behind the one before."""
    number = 0
    while kept >= texts[number].size:
        kept -= texts[number].size
        number += 1
    path, size = texts[number].path, texts[number].size
    if kept == 0 and number > 0:
        return parted(texts, number, 0)
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            behind = content.find(b"\n", max(kept - 1, 0)) + 1 or size
            before = content.rfind(b"\n", 0, behind - 1) + 1
    except (OSError, ValueError) as problem:
        raise PackError(f"{path} cannot be read: {problem}") from None
    if behind < size or number + 1 < len(texts):
        return parted(texts, number, behind)
    if before > 0 or number > 0:
        return parted(texts, number, before)
    raise PackError(f"{path} is a single line, of which no part can be kept to evaluate: name a file with --val")


def find_parts(options, separator):
    """{part: its spans}."""
    texts = surveyed(options.files, separator)
    if options.val:
        return {"train": whole(texts), "val": whole(surveyed(options.val, separator))}
    if (documents := sum(text.documents for text in texts)) >= DOCUMENTS:
        kept = documents - round(options.holdout * documents)
        return dict(zip(pack_images.PARTS, by_documents(texts, separator, min(max(kept, 1), documents - 1))))
    total = sum(text.size for text in texts)
    return dict(zip(pack_images.PARTS, by_lines(texts, total - max(1, round(options.holdout * total)))))


def coder_of(name, tokenizer, content):
    tokens = tokenizer.get_vocab(with_added_tokens=True)
    start = next((tokens[start] for start in STARTS if start in tokens), None)
    tokenizer.encode_special_tokens = True  # a text that spells <|endoftext|> does not get the token
    return Coder(name, tokenizer, content, max(tokens.values(), default=-1) + 1, start)


def read_tokenizer(path):
    import tokenizers

    content = pack_images.read_file(path)
    try:
        tokenizer = tokenizers.Tokenizer.from_str(content.decode())
    except Exception as problem:  # it raises nothing more specific
        raise PackError(f"{path} is no tokenizer.json that tokenizers {tokenizers.__version__} can read:"
                        f" {' '.join(str(problem).split())}") from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return coder_of(str(path), tokenizer, content)


def in_thread(work):
    """What `work` returns, from a thread: Ctrl-C does not wait for it."""
    future = concurrent.futures.Future()

    def fulfil():
        try:
            future.set_result(work())
        except BaseException as problem:
            future.set_exception(problem)

    threading.Thread(target=fulfil, daemon=True).start()
    return future.result()


def train_tokenizer(size, spans, separator):
    """Byte-level BPE, with GPT-2's rule for words. The same text makes the same tokenizer."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, min_frequency=2, show_progress=False, special_tokens=[STARTS[0]],
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))

    def texts(progress):
        for piece in pieces(spans, separator, PIECE // 8):  # it holds 256 of them
            yield piece.text()
            progress.add(len(piece.content))
        progress.show(f"choosing {size:,} tokens")

    with Progress("counting words", spans) as progress:
        in_thread(lambda: tokenizer.train_from_iterator(texts(progress), trainer))
    if (found := tokenizer.get_vocab_size()) < size:
        raise PackError(f"the text to train on repeats too little for --train-vocabulary {size}: give {found} or less,"
                        " or more text")
    return coder_of("the tokenizer", tokenizer, tokenizer.to_str(pretty=True).encode())


def batched(all_pieces):
    batch, size = [], 0
    for piece in all_pieces:
        batch.append(piece)
        size += len(piece.content) + DOCUMENT
        if size >= BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def encoded(batch, coder):
    """The tokens of each piece, which decode to it."""
    texts = [piece.text() for piece in batch]
    try:
        tokens = [found.ids for found in coder.tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
        decoded = coder.tokenizer.decode_batch(tokens, skip_special_tokens=False)
    except Exception as problem:  # it raises nothing more specific
        raise PackError(f"{batch[0].path} cannot be encoded with {coder.name}:"
                        f" {' '.join(str(problem).split())}") from None
    for piece, text, again in zip(batch, texts, decoded):
        if text != again:
            at = piece.at + len(os.path.commonprefix([text, again]).encode())
            raise PackError(f"{piece.path} cannot be decoded from its tokens again, first at byte {at}: {coder.name}"
                            " loses text; take one that is byte-level, such as GPT-2's")
    return tokens


def write_part(folder, part, spans, coder, separator, most):
    """Counts: files, documents, tokens, bytes."""
    counts = {"files": 0, "documents": 0, "tokens": 0, "bytes": 0}
    with Progress(f"encoding {part}", spans) as progress, Shards(folder, part, coder.layout, most) as shards:
        for batch in batched(pieces(spans, separator)):
            for piece, tokens in zip(batch, encoded(batch, coder)):
                shards.add([coder.start, *tokens] if piece.first and coder.start is not None else tokens)
                counts["documents"] += piece.first
                counts["bytes"] += len(piece.content)
                progress.add(len(piece.content))
    if shards.tokens < FEWEST_TOKENS:
        raise PackError(f"the text of {part} makes {shards.tokens} tokens, must be {FEWEST_TOKENS} or more: give more"
                        " text")
    return {**counts, "files": shards.files, "tokens": shards.tokens}


def alphabet():
    """{character: byte}: how byte-level tokenizers write bytes."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {chr(byte): byte for byte in shown} | {chr(256 + i): byte for i, byte in enumerate(hidden)}


def token_bytes(coder):
    """What each token stands for."""
    letters, special = alphabet(), coder.tokenizer.get_added_tokens_decoder()
    texts = [coder.tokenizer.id_to_token(token) or "" for token in range(coder.vocabulary)]
    return [text.encode() if token in special or not letters.keys() >= set(text) else bytes(map(letters.get, text))
            for token, text in enumerate(texts)]


def write_notes(folder, coder, counts):
    """tokenizer.json, tokens.json, and tokenizer.bin, what tokens stand for, as llm.c has it: the latter if no token
    is too long for it."""
    (folder / "tokenizer.json").write_bytes(coder.content)
    stand_for = token_bytes(coder)
    if max(map(len, stand_for)) < 256:
        start = 0 if coder.start is None else coder.start
        header = struct.pack("<4I", 20240328, 2, len(stand_for), start).ljust(4 * HEADER, b"\0")
        lengths = (bytes([len(of)]) + of for of in stand_for)
        (folder / "tokenizer.bin").write_bytes(header + b"".join(lengths))
    notes = {"format": "stratagem tokens 1", "vocabulary": coder.vocabulary,
             "tokenizer_sha256": hashlib.sha256(coder.content).hexdigest()}
    for part, found in counts.items():
        notes[part] = {"tokens": found["tokens"], "bytes": found["bytes"]}
    (folder / "tokens.json").write_text(json.dumps(notes, indent=2) + "\n", encoding="utf-8")


def show(counts):
    table = [["part", "files", "documents", "tokens", "bytes", "bytes per token"]]
    for part, found in counts.items():
        table.append([part, *(f"{number:,}" for number in found.values()), f"{found['bytes'] / found['tokens']:.2f}"])
    pack_images.show(table)


def run(options):
    check(options)
    separator = separating(options.separator)
    coder = read_tokenizer(options.tokenizer) if options.tokenizer else None
    parts = find_parts(options, separator)
    coder = coder or train_tokenizer(options.train_vocabulary, parts["train"], separator)
    try:
        with pack_images.appearing(options.output) as folder:
            counts = {part: write_part(folder, part, spans, coder, separator, options.shard_tokens)
                      for part, spans in parts.items()}
            write_notes(folder, coder, counts)
    except OSError as problem:
        raise PackError(f"{options.output} cannot be written: {' '.join(str(problem).split())}", IO) from None
    show(counts)
    bits = 8 * array.array(coder.layout[-1]).itemsize
    print(f"wrote {options.output}: a vocabulary of {coder.vocabulary:,} tokens, of {bits} bits each")
    if coder.start is None:
        print(f"note: {coder.name} has neither {' nor '.join(STARTS)}; nothing tells where a document begins")
    print(f"next: stratagem data stats {shlex.quote(str(options.output))}")


def main():
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        run(arguments())
    except PackError as problem:
        print(f"tokenize_text.py: {problem}", file=sys.stderr)
        return problem.code
    except KeyboardInterrupt:
        print("tokenize_text.py: interrupted; no file is left", file=sys.stderr, flush=True)
        os._exit(INTERRUPTED)  # a thread may go on, which Python's end would disturb
    return 0


if __name__ == "__main__":
    sys.exit(outputs.run("tokenize_text.py", main))
