"""Prepares a module for export: without wrappers, on the CPU, in float32."""

import collections
import inspect

import torch
from torch import nn

from . import ExportError

UNKNOWN = torch.uint16, torch.uint32, torch.uint64


def prepared(model, example):
    """The module itself, and what was changed or is odd, in sentences."""
    remarks = []
    model = unwrapped(model, remarks)
    refuse_several_inputs(model)
    remarks += give_sizes(model, example)
    for name, tensor in model.state_dict(keep_vars=True).items():
        if isinstance(tensor, torch.Tensor) and tensor.is_meta:
            raise ExportError(f"{name} has no values (its device is meta)\n  fill it, then export")
    convert(model, remarks)
    refuse_shared_memory(model)
    remarks += hidden_parameters(model)
    remarks += not_finite(model)
    return model, remarks


def wrapped_by(module):
    """What is inside of torch.compile's, DataParallel's, DistributedDataParallel's or an average's module."""
    if isinstance(module, torch._dynamo.OptimizedModule):
        return module._orig_mod
    inside = nn.DataParallel, nn.parallel.DistributedDataParallel, torch.optim.swa_utils.AveragedModel
    return module.module if isinstance(module, inside) else None


def unwrapped(model, remarks):
    """Without wrappers: around the model, and around modules in it. Their names, and so the state_dict's, lose them."""
    while (inner := wrapped_by(model)) is not None:
        remarks.append(f"exports what {type(model).__name__} wraps, {type(inner).__name__}")
        model = inner
    for name, module in list(model.named_modules()):
        for child_name, child in list(module.named_children()):
            while (inner := wrapped_by(child)) is not None:
                place = f"{name}.{child_name}".lstrip(".")
                remarks.append(f"{place}: exports what {type(child).__name__} wraps, {type(inner).__name__}")
                setattr(module, child_name, child := inner)
    for module in model.modules():
        module._compiled_call_impl = None  # of module.compile()
    return model


def refuse_several_inputs(model):
    try:
        parameters = inspect.signature(model.forward).parameters.values()
    except (TypeError, ValueError):
        return
    needed = [each.name for each in parameters if each.default is each.empty
              and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    if len(needed) > 1:
        raise ExportError(f"forward({', '.join(needed)}) takes {len(needed)} inputs; stratagem gives a model one, the"
                          f" images\n  export a module whose forward({needed[0]}) makes the others itself")


def lazy_tensors(model):
    """Names of parameters and buffers that have no shape yet."""
    return [name for name, tensor in (*model.named_parameters(), *model.named_buffers())
            if nn.parameter.is_lazy(tensor)]


def give_sizes(model, example):
    """Lazy layers take their sizes from a first pass, as PyTorch wants it."""
    lazy = lazy_tensors(model)
    if not lazy:
        return []
    modes = {module: module.training for module in model.modules()}
    try:
        with torch.no_grad():
            model.eval()(example)
    except Exception as problem:  # whatever forward() raises
        told = f"{type(problem).__name__}: {' '.join(str(problem).split())}"
        raise ExportError(f"{lazy[0]} is of a lazy layer, whose size a first pass of a sample of --input decides, and"
                          f" that fails: {told}\n  correct --input, or give the layer its size") from None
    finally:
        for module, training in modes.items():
            module.training = training
    if left := lazy_tensors(model):
        raise ExportError(f"{left[0]} is of a lazy layer that forward() does not use, and has no size\n  leave the"
                          " layer out, or give it its size")
    return [f"{len(lazy)} tensors of lazy layers, such as {lazy[0]}, got their sizes from a sample of --input"]


def not_finite(model):
    """Weights that `run` would refuse."""
    names = [name for name, tensor in model.named_parameters()
             if tensor.is_floating_point() and not torch.isfinite(tensor).all()]
    if not names:
        return []
    return [f"{len(names)} parameters have values that are not finite, such as {names[0]}: a training needs others"
            " (model.weights)"]


def convert(model, remarks):
    """In place: parameters stay the same objects, for whoever else refers to them."""
    floating = [(name, tensor) for name, tensor in (*model.named_parameters(), *model.named_buffers())
                if tensor.is_floating_point()]
    for name, tensor in model.named_parameters():
        if tensor.is_complex():
            raise ExportError(f"parameter {name} is complex; stratagem trains real ones\n  keep its real and imaginary"
                              " parts (torch.view_as_real)")
    for name, tensor in model.named_buffers():
        if tensor.is_complex():
            raise ExportError(f"buffer {name} is complex, which stratagem does not take\n  keep its real and imaginary"
                              " parts (torch.view_as_real)")
        if tensor.dtype in UNKNOWN:
            raise ExportError(f"buffer {name} is of {text_of(tensor.dtype)}, which files for stratagem do not hold\n"
                              "  make it int64")
    other = [(name, tensor.dtype) for name, tensor in floating if tensor.dtype != torch.float32]
    if other:
        name, kind = other[0]
        remarks.append(f"{len(other)} tensors were converted to float32, such as {name} of {text_of(kind)};"
                       " precision.compute chooses the type of a training")
        model.float()
    elsewhere = {str(tensor.device) for _, tensor in floating if tensor.device.type != "cpu"}
    if elsewhere:
        remarks.append(f"the model was on {', '.join(sorted(elsewhere))}: it is exported on the CPU")
        model.cpu()


def hidden_parameters(model):
    """Of lists and dictionaries, and no one else's: PyTorch's optimizers do not get them either."""
    known = {id(tensor) for tensor in model.parameters()}
    for name, module in model.named_modules():
        for attribute, value in vars(module).items():
            if attribute.startswith("_") or not isinstance(value, (list, tuple, dict)):
                continue
            held = value.values() if isinstance(value, dict) else value
            if any(id(parameter) not in known for each in held for parameter in parameters_of(each)):
                place = f"{name}.{attribute}".lstrip(".")
                yield (f"{place} holds a parameter that model.parameters() lacks: it is a constant, as for PyTorch's"
                       " optimizers; nn.ParameterList and ModuleList make it one of the model's")


def parameters_of(thing):
    if isinstance(thing, nn.Module):
        return thing.parameters()
    return [thing] if isinstance(thing, nn.Parameter) else []


def text_of(kind):
    return str(kind).removeprefix("torch.")


def refuse_shared_memory(model):
    """Parameters in memory of others: in PyTorch, and there alone, a step of an optimizer changes both."""
    groups = collections.defaultdict(list)
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        groups[tensor.untyped_storage().data_ptr()].append((name, tensor))
    for place, group in groups.items():
        if place == 0 or not any(isinstance(tensor, nn.Parameter) for _, tensor in group):
            continue
        taken = torch.zeros(group[0][1].untyped_storage().nbytes() if len(group) > 1 else 0, dtype=torch.bool)
        for name, tensor in group if len(group) > 1 else ():
            view = taken.view(-1, tensor.element_size())[:, 0].as_strided(
                tensor.shape, [step * tensor.element_size() for step in tensor.stride()],
                tensor.storage_offset() * tensor.element_size())
            if view.any():
                raise ExportError(f"{group[0][0]} and {name} are two tensors in the same memory, which PyTorch changes"
                                  " together\n  make them one (self.b = self.a), or copy (.clone())")
            view.fill_(True)


def separate(model, program):
    """Every tensor contiguous, and in memory of its own: what the file keeps of channels_last weights, of views, of
    transposed parameters. The program has the module's values, but parameters of its own, which have no hooks."""
    for tensor in (*model.parameters(), *model.buffers()):
        if not tensor.is_contiguous() or tensor.untyped_storage().nbytes() != tensor.nbytes:
            tensor.data = tensor.data.clone(memory_format=torch.contiguous_format)
    own = {}
    for name, tensor in (*model.named_parameters(remove_duplicate=False),
                         *model.named_buffers(remove_duplicate=False)):
        if name in program.state_dict:
            program.state_dict[name] = own.setdefault(id(tensor), own_tensor(tensor))
    for name, tensor in program.constants.items():
        if isinstance(tensor, torch.Tensor):
            program.constants[name] = tensor.detach().clone(memory_format=torch.contiguous_format)


def own_tensor(tensor):
    if isinstance(tensor, nn.Parameter):
        return nn.Parameter(tensor.detach(), requires_grad=tensor.requires_grad)
    return tensor
