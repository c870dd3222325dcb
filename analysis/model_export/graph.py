"""Traces a module: the program of torch.export, with a dynamic number of samples."""

import collections
import functools
import re

import torch

from . import ExportError

CURES = (  # of what torch.export says
    (r"extract specialized \w+ from data-dependent|data-dependent expression zuf\d+ \(",
     "forward() reads a number out of a tensor, as float(t), int(t) and t.item() do: compute with the tensor"),
    (r"data-dependent", "control flow depends on data: write it with operators such as torch.where"),
    (r"inferred to be a constant|specialized", "the number of samples became a constant: write x.shape[0] for len(x),"
                                               " n // 4 for int(n / 4), and no number of samples in forward()"),
    (r"dynamo-optimized", "leave torch.compile out of forward(), or export with torch 2.9 or later"),
    (r"same dtype|expected scalar type|should be the same",
     "forward() mixes types: leave out conversions such as x.bfloat16(); precision.compute chooses the type"),
)
LAST = 2**63 - 1
Outputs = collections.namedtuple("Outputs", "used others")  # of a model with several: words, and how many are left out


def export(model, example):
    """The program, and what of its outputs is used: only the first is trained, others are auxiliary heads."""
    program = trace(model, example)
    outputs = len(program.graph_signature.user_outputs)
    if program.module_call_graph[0].signature.out_spec.is_leaf():
        return program, None
    plain, used = model.forward, ["the first output"]

    @functools.wraps(plain)
    def first(*inputs):
        found = plain(*inputs)
        if isinstance(found, dict):
            used[0] = f"output {next(iter(found))!r}, the first,"
        return first_of(found)

    model.forward = first
    try:
        return trace(model, example), Outputs(used[0], outputs - 1)
    finally:
        model.forward = plain


def first_of(outputs):
    if isinstance(outputs, dict):
        return next(iter(outputs.values()))
    return outputs if isinstance(outputs, torch.Tensor) else outputs[0]


def trace(model, example):
    try:
        return traced(model, example, torch.export.Dim("batch"))
    except Exception as problem:  # torch raises whatever it likes
        limits = suggested_limits(str(problem))
        if limits is None:
            raise untraceable(model, problem) from None
    try:
        return traced(model, example, torch.export.Dim("batch", min=limits[0], max=limits[1]))
    except Exception as problem:
        raise untraceable(model, problem) from None


def traced(model, example, batch):
    with torch.compiler.set_stance("force_eager"):  # functions under torch.compile, too
        program = torch.export.export(model, (example,), dynamic_shapes=({0: batch},), strict=False)
    adopt_constants(model, program)
    return program


def suggested_limits(message):
    """What torch proposes: batch = Dim('batch', max=63)."""
    found = re.search(r"= Dim\('\w+'((?:, (?:min|max)=\d+)+)\)", message)
    if not found:
        return None
    limits = dict(re.findall(r"(min|max)=(\d+)", found[1]))
    return int(limits.get("min", 1)), int(limits.get("max", LAST))


def limits_of(program):
    """Least and most samples that the program takes; at most None: any number."""
    for limit in program.range_constraints.values():
        least = int(limit.lower) if limit.lower.is_Integer else 0
        most = int(limit.upper) if limit.upper.is_Integer and limit.upper < LAST // 2 else None
        return least, most
    return 0, None


def check_logits(program):
    """stratagem's loss is cross-entropy over [samples, classes]."""
    name = program.graph_signature.user_outputs[0]
    value = next((node.meta["val"] for node in program.graph.nodes if node.name == name), None)
    if not isinstance(value, torch.Tensor):
        raise ExportError("the model's first output is no tensor; stratagem trains [samples, classes]")
    if value.dim() != 2 or not isinstance(value.shape[0], torch.SymInt) or not value.is_floating_point():
        shape = ", ".join(["samples" if isinstance(size, torch.SymInt) else str(size) for size in value.shape])
        raise ExportError(f"the model's first output is [{shape}] of {value.dtype}; stratagem trains classifiers, whose"
                          " output is [samples, classes] of a floating type")
    if value.shape[1] == 1:
        raise ExportError("the model has one logit; cross-entropy takes one for each class: make it two")


def untraceable(model, problem):
    message = str(problem)
    cure = next((cure for pattern, cure in CURES if re.search(pattern, message)), None)
    counting = [name for name, module in model.named_modules() if divides_by_count(module)]
    if counting and "data-dependent" in message:
        cure = (f"batch norm {counting[0]} has momentum=None: it reads how many batches there were out of"
                " num_batches_tracked\n  give it a number, such as momentum=0.1")
    return ExportError(f"torch.export cannot trace the model:\n{message}" + (f"\n  {cure}" if cure else ""))


def divides_by_count(module):
    """Whether it is a batch norm that takes the mean over all batches."""
    norm = isinstance(module, torch.nn.modules.batchnorm._BatchNorm)
    return norm and module.training and module.track_running_stats and module.momentum is None


def adopt_constants(model, program):
    """Parameters and buffers that forward() reaches by another way than their module (a list, a function) became
    constants: they are parameters and buffers again."""
    own = {}
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        own.setdefault(tensor.untyped_storage().data_ptr(), []).append((name, tensor))
    specs = program.graph_signature.input_specs
    places = {spec.target: spec.arg.name for spec in specs if spec.target in program.state_dict}
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    for spec in list(specs):
        value = program.constants.get(spec.target) if spec.kind.name == "CONSTANT_TENSOR" else None
        if value is None or value.numel() == 0 or value.untyped_storage().data_ptr() not in own:
            continue
        name, axes = owner_of(value, own[value.untyped_storage().data_ptr()], spec.target)
        replace(program, nodes[spec.arg.name], nodes[places[name]], axes)
        specs.remove(spec)
        del program.constants[spec.target]
    program.graph.lint()
    program.graph_module.recompile()


def owner_of(value, tensors, target):
    """The name of the tensor that the constant is, and the order of its axes in the constant."""
    for name, tensor in tensors:
        if value.storage_offset() != tensor.storage_offset() or value.numel() != tensor.numel():
            continue
        axes = axes_of(list(zip(tensor.shape, tensor.stride())), list(zip(value.shape, value.stride())))
        if axes is not None:
            return name, axes
    raise ExportError(f"{target} is a view of {tensors[0][0]}, made before forward(): torch.export makes a constant of"
                      " it, which is never trained\n  take the view in forward()")


def axes_of(whole, part):
    """The permutation that makes `part` of `whole`, lists of (size, stride); None: there is none."""
    axes, free = [], list(range(len(whole)))
    if len(part) != len(whole):
        return None
    for axis in part:
        found = next((index for index in free if whole[index] == axis), None)
        if found is None:
            return None
        free.remove(found)
        axes.append(found)
    return axes


def replace(program, constant, place, axes):
    if axes == sorted(axes):
        constant.replace_all_uses_with(place)
    else:
        with program.graph.inserting_before(next(n for n in program.graph.nodes if n.op != "placeholder")):
            view = program.graph.call_function(torch.ops.aten.permute.default, (place, axes))
            view.meta.update(val=constant.meta["val"])
            constant.replace_all_uses_with(view)
    program.graph.erase_node(constant)
