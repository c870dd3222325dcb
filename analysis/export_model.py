#!/usr/bin/env python3
"""Exports a PyTorch model into a file that stratagem can plan and train: `model: {file: net.pt2}`.

  python3 analysis/export_model.py torchvision.models:resnet18 --args num_classes=10 --input 3x64x64 -o resnet18.pt2
  python3 analysis/export_model.py my_nets.py:make_net --input 1x28x28 -o net.pt2

The first word names a function or a class, in a module that Python can import or in a file; what it returns is the
model. The file holds the model's graph as torch.export traces it in training mode, and its weights. Needs torch 2.8 or
later, and whatever your model needs. Nothing is trained. One step of the module and of its graph are compared: a file
that would train otherwise than the module is not written, unless --accept says that it is meant. If stratagem is
built, it then reads the file and shows its blocks, or says what it cannot train and why.
"""

import argparse
import ast
import collections
import importlib
import importlib.util
import pathlib
import shlex
import subprocess
import sys
import time
import traceback

import outputs
from model_export import ExportError

OLDEST, NEWEST = (2, 8), (2, 15)  # that were tried
EXAMPLES = 2  # samples of the example: 0 and 1 would be taken for constants
SHOWN = 8  # kinds of operators
KINDS = "loss", "gradients", "buffers", "evaluation"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODULE:FUNCTION", help="what makes the model")
    parser.add_argument("--args", nargs="*", default=[], metavar="NAME=VALUE", help="of the function")
    parser.add_argument("--input", required=True, metavar="SHAPE",
                        help="of one sample: 3x224x224 for images, 128 for texts of so many tokens")
    parser.add_argument("--tokens", type=int, metavar="N", help="the input is integers below N")
    parser.add_argument("-o", "--output", required=True, type=pathlib.Path, metavar="FILE.pt2")
    parser.add_argument("--frozen", action="store_true",
                        help="layers that the function leaves in evaluation mode stay so: frozen batch norms")
    parser.add_argument("--accept", nargs="+", default=[], choices=KINDS, metavar="KIND",
                        help=f"write the file though its {', '.join(KINDS[:-1])} or {KINDS[-1]} differ from the"
                             " module's")
    parser.add_argument("--no-check", action="store_true", help="do not compare; the file tells")
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
    model = made if isinstance(made, torch.nn.Module) else called(name, made, values)
    if not isinstance(model, torch.nn.Module):
        raise ExportError(f"{name} returned {type(model).__name__}, not a torch.nn.Module")
    return model


def called(name, function, values):
    """What the user's function returns."""
    try:
        return function(**values)
    except Exception as problem:  # whatever it raises
        last = traceback.extract_tb(problem.__traceback__)[-1]
        raise ExportError(f"{name} failed: {type(problem).__name__}: {problem}\n  at {last.filename}:{last.lineno};"
                          " --args gives the function its arguments") from None


def example_of(shape, tokens):
    import torch

    if tokens:
        return torch.randint(tokens, (EXAMPLES, *shape))
    return torch.randn(EXAMPLES, *shape)


def set_mode(model, frozen):
    """In training mode, but for what stays in evaluation. What there is to know of it."""
    evaluating = evaluating_layers(model)
    if not frozen:
        model.train()
    left = evaluating_layers(model)
    if left:
        return [f"{count_of(left)} in evaluation mode: batch norms there do not learn, nothing is dropped"]
    if evaluating:
        return [f"{count_of(evaluating)} in evaluation mode: exported in training mode; --frozen leaves it as it is"]
    return []


def evaluating_layers(model):
    """Norms with running statistics and whatever drops; where there is none, other layers."""
    layers = [(name, module) for name, module in model.named_modules()
              if not module.training and not list(module.children())]
    concerned = [name for name, module in layers
                 if getattr(module, "track_running_stats", False) or hasattr(module, "p") or hasattr(module, "dropout")]
    return concerned or [name or "the model" for name, _ in layers]


def count_of(layers):
    return f"{layers[0]} is" if len(layers) == 1 else f"{len(layers)} layers, {layers[0]} first, are"


def describe(model, program, outputs_of, remarks):
    parameters = dict(model.named_parameters())
    buffers = dict(model.named_buffers())
    print(f"parameters: {sum(p.numel() for p in parameters.values()):,} in {len(parameters)} tensors;"
          f" buffers: {len(buffers)}")
    frozen = [name for name, parameter in parameters.items() if not parameter.requires_grad]
    if frozen:
        remarks.append(f"{len(frozen)} parameters do not require gradients, such as {frozen[0]}: they stay as they are")
    if outputs_of:
        others = "one other" if outputs_of.others == 1 else f"{outputs_of.others} others"
        remarks.append(f"only {outputs_of.used} is used; {others} (auxiliary heads) left out")
    for remark in remarks:
        print(f"note: {remark}")
    targets = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    operators = collections.Counter(target for target in targets if "getitem" not in target)
    most = ", ".join(f"{name.removeprefix('aten.').removesuffix('.default')} {count}"
                     for name, count in operators.most_common(SHOWN))
    print(f"operators: {sum(operators.values())} of {len(operators)} kinds: {most}"
          f"{', ...' if len(operators) > SHOWN else ''}")


def record_of(model, program, options):
    """What the file tells of its export: whether the program does what the module does, and its first loss."""
    from model_export.first_loss import batch, first_loss, samples_of

    shape = shape_of(options.input)
    if options.no_check:
        checked = "no"
        print("check: none")
    else:
        checked = check(model, program, batch(shape, options.tokens, samples_of(program)), options.accept)
    return {"version": 1, "check": checked, "first_loss": first_loss(program, shape, options.tokens)}


def check(model, program, x, accepted):
    """"equal", or the kinds of differences that were accepted."""
    from model_export.check import differences

    begin = time.monotonic()
    found, causes = differences(model, program, x)
    kinds = [difference.kind for difference in found]
    text = "".join(f"\n  {difference.text}" for difference in found)
    text += f"\n  it has {causes.text()}, which no graph of operators shows" if found and causes.text() else ""
    if not set(kinds) <= set(accepted):
        raise ExportError(f"the exported program does not train as the module does:{text}\n  change the model; or, if"
                          f" what the program does is meant: --accept {' '.join(kinds)}")
    print(f"check: one step and evaluation {'differ, as accepted:' + text if found else 'equal those of the module'}"
          f" ({time.monotonic() - begin:.1f} s)")
    return kinds or "equal"


def show_blocks(program, file):
    """What stratagem makes of the file. Its exit code."""
    program = program or pathlib.Path(__file__).resolve().parent.parent / "build" / "stratagem"
    if not program.is_file():
        print(f"next: stratagem model {shlex.quote(str(file))}   # its blocks, or what stratagem cannot train")
        return 0
    sys.stdout.flush()
    return subprocess.run([program, "model", file], check=False).returncode


def run(options):
    shape = shape_of(options.input)
    values = values_of(options.args)
    if options.output.suffix != ".pt2":
        raise ExportError(f"-o {options.output}: the name of a model's file ends in .pt2\n  take {options.output}.pt2")
    try:
        import torch
    except ImportError:
        raise ExportError("needs torch: pip install torch") from None
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if version < OLDEST:
        raise ExportError(f"torch {torch.__version__} is too old: stratagem reads files of {OLDEST[0]}.{OLDEST[1]} and"
                          " later\n  pip install --upgrade torch")
    if version > NEWEST:
        print(f"note: torch {torch.__version__} is newer than {NEWEST[0]}.{NEWEST[1]}, the last that was tried")
    check_output(options.output)
    return write(make_model(options.model, values), example_of(shape, options.tokens), options)


def check_output(path):
    from model_export.file import is_export

    if not path.parent.is_dir():
        raise ExportError(f"{path.parent} is not a folder")
    if problem := outputs.taken(path, is_export, "exported model"):
        raise ExportError(problem)


def write(model, example, options):
    import torch
    from model_export.buffers import refuse_random
    from model_export.file import save
    from model_export.graph import check_logits, export, limits_of
    from model_export.module import prepared, separate

    model, remarks = prepared(model, example)
    remarks += set_mode(model, options.frozen)
    program, outputs_of = export(model, example)
    check_logits(program)
    refuse_random(program)
    if (limits := limits_of(program))[1] is not None:
        remarks.append(f"the program takes {max(1, limits[0])} to {limits[1]} samples at once, no more")
    separate(model, program)
    describe(model, program, outputs_of, remarks)
    record = record_of(model, program, options)
    replaced = " (replaced)" if options.output.exists() else ""
    save(program, options.output, record)
    size = options.output.stat().st_size / 2**20
    print(f"wrote {options.output}{replaced}: {size:.1f} MiB, torch {torch.__version__}")
    return show_blocks(options.program, options.output)


def main():
    try:
        return run(arguments())
    except ExportError as problem:
        print(f"export_model.py: {problem}", file=sys.stderr)
        return problem.code


if __name__ == "__main__":
    sys.exit(outputs.run("export_model.py", main))
