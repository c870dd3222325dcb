"""Writes a program as a file: torch.export's archive, its tensors as raw bytes, and the record of the export."""

import contextlib
import json
import os
import zipfile

import torch
from torch._export.serde.serialize import serialize_tensor_meta

from . import ExportError

SCHEMA = 8  # major version, of torch 2.8 and later
IO, WORDS = 6, 200
RECORD = "extra/stratagem.json"
TENSORS = {"weights": "weight_", "constants": "tensor_"}  # folders in data/, and how their records begin


def save(program, path, record=None):
    """Weights and constants are written anew: torch 2.8 pickles them, which stratagem does not open, and others keep
    strides and whole storages. A link stays one."""
    path = path.resolve()
    part = path.with_name(f".{path.stem}.part.pt2")  # torch wants this ending
    try:
        torch.export.save(program, part)
        write_again(program, part, record)
        os.replace(part, path)
    except (OSError, RuntimeError) as problem:  # torch raises one or the other where a disk is full
        raise ExportError(f"{path} cannot be written: {' '.join(str(problem).split())[:WORDS]}", IO) from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def is_export(path):
    """Whether torch.export wrote it."""
    try:
        with zipfile.ZipFile(path) as archive:
            return any("/models/" in name for name in archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False


def write_again(program, path, record):
    reader = torch._C.PyTorchFileReader(str(path))
    left_out = ".data/", *(f"data/{kind}/" for kind in TENSORS)
    kept = [name for name in reader.get_all_records() if not name.startswith(left_out)]
    records = {name: reader.get_record(name) for name in kept if name != "byteorder"}
    del reader
    check_schema(records)
    constants = {name: value for name, value in program.constants.items() if isinstance(value, torch.Tensor)}
    records |= raw_records("weights", program.state_dict) | raw_records("constants", constants)
    if record is not None:
        records[RECORD] = json.dumps(record).encode()
    writer = torch._C.PyTorchFileWriter(str(path))
    for name, content in records.items():
        writer.write_record(name, content, len(content))
    writer.write_end_of_file()


def check_schema(records):
    for name, content in records.items():
        if name.startswith("models/"):
            schema = json.loads(content)["schema_version"]["major"]
            if schema != SCHEMA:
                raise ExportError(f"torch {torch.__version__} writes files of schema {schema}; stratagem reads {SCHEMA}"
                                  "\n  export with torch 2.8 or later, whose files have it")


def raw_records(kind, tensors):
    """As torch 2.9 and later write them; tied tensors once."""
    records, entries, places = {}, {}, {}
    for name, tensor in tensors.items():
        same = tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride()
        if tensor.numel() == 0 or same not in places:
            places[same] = f"{TENSORS[kind]}{len(records)}"
            plain = tensor.detach().contiguous().cpu()
            records[f"data/{kind}/{places[same]}"] = bytes(plain.flatten().view(torch.uint8).numpy())
        entries[name] = {
            "path_name": places[same],
            "is_param": isinstance(tensor, torch.nn.Parameter),
            "use_pickle": False,
            "tensor_meta": meta_of(tensor),
        }
    records[f"data/{kind}/model_{kind}_config.json"] = json.dumps({"config": entries}).encode()
    return records


def meta_of(tensor):
    meta = serialize_tensor_meta(tensor.detach().contiguous())
    return {
        "dtype": int(meta.dtype),
        "sizes": [{"as_int": size.as_int} for size in meta.sizes],
        "requires_grad": tensor.requires_grad,
        "device": {"type": "cpu", "index": None},
        "strides": [{"as_int": stride.as_int} for stride in meta.strides],
        "storage_offset": {"as_int": 0},
        "layout": int(meta.layout),
    }
