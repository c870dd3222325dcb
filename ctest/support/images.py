"""Images and data folders for tests, with Python's own libraries alone."""

import io
import struct
import tarfile
import zlib


def png(edge, pixel):
    """A colour image of `edge` x `edge` pixels; pixel(y, x) is (r, g, b)."""
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = b"".join(b"\0" + bytes(value for x in range(edge) for value in pixel(y, x)) for y in range(edge))
    header = struct.pack(">IIBBBBB", edge, edge, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def striped(edge, label, number):
    """An image whose class can be learnt: stripes that are wider in each class, begun anywhere."""
    return png(edge, lambda y, x: (255 * ((x + number) // (label + 1) % 2), (31 * number + 7 * y) % 256, 40 * label))


def classes_of(count):
    return [f"class-{label}" for label in range(count)]


def folder_files(train, val, classes=3, edge=20, path="own"):
    """{name: content} of a data folder with so many images per class in each part."""
    return {
        f"{path}/{part}/{name}/{number}.png": striped(edge, label, number if part == "train" else 1000 + number)
        for part, images in (("train", train), ("val", val))
        for label, name in enumerate(classes_of(classes))
        for number in range(images)
    }


def shard(samples):
    """A tar file of [(key, label, content)]."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for key, label, content in samples:
            for name, data in ((f"{key}.png", content), (f"{key}.cls", str(label).encode())):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    return held.getvalue()
