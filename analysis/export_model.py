#!/usr/bin/env python3
"""Exports a PyTorch model into a file that stratagem can plan and train: `model: {file: net.pt2}`.

  python3 analysis/export_model.py torchvision.models:resnet18 --args num_classes=10 --input 3x64x64 -o resnet18.pt2
  python3 analysis/export_model.py my_nets.py:make_net --input 1x28x28 -o net.pt2

The first word names a function or a class, in a module that Python can import or in a file; what it returns is the
model. The file holds the model's graph as torch.export traces it in training mode, and its weights. Needs torch 2.8 to
2.11, and whatever your model needs. Nothing is trained. If stratagem is built, it then reads the file and shows its
blocks, or says what it cannot train and why.
"""

import argparse
import ast
import collections
import functools
import importlib
import importlib.util
import json
import pathlib
import subprocess
import sys

OLDEST, NEWEST = (2, 8), (2, 11)
EXAMPLES = 2  # samples of the example: 0 and 1 would be taken for constants
SHOWN = 8  # kinds of operators


class ExportError(Exception):
    """What cannot be exported, and why."""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODULE:FUNCTION", help="what makes the model")
    parser.add_argument("--args", nargs="*", default=[], metavar="NAME=VALUE", help="of the function")
    parser.add_argument("--input", required=True, metavar="SHAPE",
                        help="of one sample: 3x224x224 for images, 128 for texts of so many tokens")
    parser.add_argument("--tokens", type=int, metavar="N", help="the input is integers below N")
    parser.add_argument("-o", "--output", required=True, type=pathlib.Path, metavar="FILE.pt2")
    parser.add_argument("--program", type=pathlib.Path, help="stratagem; default: build/stratagem of this checkout")
    return parser.parse_args()


def shape_of(text):
    try:
        shape = [int(size) for size in text.split("x")]
    except ValueError:
        shape = []
    if not shape or min(shape) < 1:
        raise ExportError(f"--input {text}: expected sizes such as 3x224x224")
    return shape


def values_of(words):
    """{name: value} of NAME=VALUE; a value that is no Python literal is a text."""
    found = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise ExportError(f"--args {word}: expected NAME=VALUE")
        try:
            found[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            found[name] = text
    return found


def module_at(place):
    if not place.endswith(".py"):
        sys.path.insert(0, "")
        return importlib.import_module(place)
    path = pathlib.Path(place)
    if not path.is_file():
        raise ExportError(f"{place}: there is no such file")
    sys.path.insert(0, str(path.resolve().parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def make_model(name, values):
    import torch

    place, _, function = name.rpartition(":")
    if not place:
        raise ExportError(f"{name}: expected MODULE:FUNCTION, such as torchvision.models:resnet18")
    try:
        module = module_at(place)
    except ImportError as problem:
        raise ExportError(f"{place} cannot be imported: {problem}") from None
    if not hasattr(module, function):
        raise ExportError(f"{place} has no {function}")
    made = getattr(module, function)
    model = made if isinstance(made, torch.nn.Module) else made(**values)
    if not isinstance(model, torch.nn.Module):
        raise ExportError(f"{name} returned {type(model).__name__}, not a torch.nn.Module")
    return model


def example_of(shape, tokens):
    import torch

    if tokens:
        return torch.randint(tokens, (EXAMPLES, *shape))
    return torch.randn(EXAMPLES, *shape)


def export(model, example):
    """The program, and how many outputs were left out: auxiliary heads, for only the first output is trained."""
    program = trace(model, example)
    outputs = len(program.graph_signature.user_outputs)
    if program.module_call_graph[0].signature.out_spec.is_leaf():
        return program, 0
    plain = model.forward

    @functools.wraps(plain)
    def first(*inputs):
        found = plain(*inputs)
        return next(iter(found.values())) if isinstance(found, dict) else found[0]

    model.forward = first
    try:
        return trace(model, example), outputs - 1
    finally:
        model.forward = plain


def trace(model, example):
    import torch

    batch = torch.export.Dim("batch")
    try:
        return torch.export.export(model, (example,), dynamic_shapes=({0: batch},), strict=False)
    except Exception as problem:  # torch raises whatever it likes
        raise ExportError(f"torch.export cannot trace the model:\n{problem}") from None


def save(program, path):
    """Weights and constants as raw bytes: torch 2.8 pickles them, which stratagem does not open."""
    import torch

    torch.export.save(program, path)
    reader = torch._C.PyTorchFileReader(str(path))
    records = {name: reader.get_record(name) for name in reader.get_all_records()}
    del reader
    if "data/weights/model.pt" not in records:
        return
    constants = {name: value for name, value in program.constants.items() if isinstance(value, torch.Tensor)}
    for kind, tensors in (("weights", program.state_dict), ("constants", constants)):
        del records[f"data/{kind}/model.pt"]
        records.update(raw_records(kind, tensors))
    writer = torch._C.PyTorchFileWriter(str(path))
    for name, content in records.items():
        if not name.startswith(".data/") and name != "byteorder":
            writer.write_record(name, content, len(content))
    writer.write_end_of_file()


def raw_records(kind, tensors):
    """As torch 2.9 and later write them."""
    import torch
    from torch._export.serde.serialize import serialize_tensor_meta

    records, entries = {}, {}
    for number, (name, tensor) in enumerate(tensors.items()):
        place = f"{kind.removesuffix('s')}_{number}"
        plain = tensor.detach().contiguous().cpu()
        entries[name] = {
            "path_name": place,
            "is_param": isinstance(tensor, torch.nn.Parameter),
            "use_pickle": False,
            "tensor_meta": meta_of(serialize_tensor_meta(plain)),
        }
        records[f"data/{kind}/{place}"] = bytes(plain.flatten().view(torch.uint8).numpy())
    records[f"data/{kind}/model_{kind}_config.json"] = json.dumps({"config": entries}).encode()
    return records


def meta_of(meta):
    return {
        "dtype": int(meta.dtype),
        "sizes": [{"as_int": size.as_int} for size in meta.sizes],
        "strides": [{"as_int": stride.as_int} for stride in meta.strides],
        "storage_offset": {"as_int": meta.storage_offset.as_int},
        "layout": int(meta.layout),
    }


def describe(model, program, ignored):
    parameters = dict(model.named_parameters())
    buffers = dict(model.named_buffers())
    print(f"parameters: {sum(p.numel() for p in parameters.values()):,} in {len(parameters)} tensors;"
          f" buffers: {len(buffers)}")
    frozen = [name for name, parameter in parameters.items() if not parameter.requires_grad]
    if frozen:
        print(f"note: {len(frozen)} parameters do not require gradients, such as {frozen[0]}; stratagem trains them")
    if ignored:
        print(f"note: only the first output is used; {ignored} others (auxiliary heads) are left out")
    targets = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    operators = collections.Counter(target for target in targets if "getitem" not in target)
    most = ", ".join(f"{name.removeprefix('aten.').removesuffix('.default')} {count}"
                     for name, count in operators.most_common(SHOWN))
    print(f"operators: {sum(operators.values())} of {len(operators)} kinds: {most}"
          f"{', ...' if len(operators) > SHOWN else ''}")


def show_blocks(program, file):
    """What stratagem makes of the file. Its exit code."""
    program = program or pathlib.Path(__file__).resolve().parent.parent / "build" / "stratagem"
    if not program.is_file():
        print(f"next: stratagem model {file}   # its blocks, or what stratagem cannot train")
        return 0
    sys.stdout.flush()
    return subprocess.run([program, "model", file], check=False).returncode


def run(options):
    shape = shape_of(options.input)
    values = values_of(options.args)
    try:
        import torch
    except ImportError:
        raise ExportError("needs torch: pip install torch") from None
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if not OLDEST <= version <= NEWEST:
        raise ExportError(f"torch {torch.__version__}: stratagem reads what torch {OLDEST[0]}.{OLDEST[1]} to"
                          f" {NEWEST[0]}.{NEWEST[1]} export")
    if not options.output.parent.is_dir():
        raise ExportError(f"{options.output.parent} is not a folder")
    model = make_model(options.model, values).train()
    example = example_of(shape, options.tokens)
    program, ignored = export(model, example)
    describe(model, program, ignored)
    save(program, options.output)
    print(f"wrote {options.output}: {options.output.stat().st_size / 2**20:.1f} MiB, torch {torch.__version__}")
    return show_blocks(options.program, options.output)


def main():
    try:
        return run(arguments())
    except ExportError as problem:
        print(f"export_model.py: {problem}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
