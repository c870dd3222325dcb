"""Compares a module with its program: one step of training, and evaluation, on a batch. What they compute is equal bit
by bit, as the operators are; where it is not, float64 tells rounding from a difference."""

import contextlib
import dataclasses
import traceback

import torch

from . import ExportError
from .buffers import assign_at_end, assign_in_place, writes_of
from .first_loss import kept, state_of
from .graph import export, first_of
from .module import separate
from .quiet import Quiet, RandomNumbers

KINDS = "loss", "gradients", "buffers", "evaluation"
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}  # relative to the largest number of its kind
SHOWN = 4  # names
SEED = 1


@dataclasses.dataclass
class Numbers:
    """Of one step, by the names of the state_dict; of evaluation, the first output, or None where it is unknown."""

    loss: torch.Tensor
    gradients: dict
    buffers: dict
    evaluation: torch.Tensor
    changed: list = ()  # buffers that the module changes in evaluation
    otherwise: dict = dataclasses.field(default_factory=dict)  # {cause: the program's evaluation without it}


@dataclasses.dataclass
class Difference:
    kind: str
    text: str


def differences(model, program, x):
    """What the program does otherwise than the module. Both have the values of before afterwards. Where that makes
    evaluation equal, what the program assigns to a buffer is assigned in place."""
    causes = Causes(model)
    try:
        found = compared(model, program, x, causes)
        if [difference.kind for difference in found] == ["evaluation"] and (copies := assign_in_place(program)):
            if not compared(model, program, x, causes, in_place=True):
                return [], causes
            assign_at_end(program, copies)
    except ExportError:
        raise
    except Exception as problem:  # of the user's code
        raise ExportError(f"a step or an evaluation with {len(x)} samples fails: {type(problem).__name__}: {problem}\n"
                          "  --no-check leaves them out") from None
    return found, causes


def compared(model, program, x, causes, in_place=False):
    numbers = both(model, program, x, causes)
    if not compare(*numbers, 0):
        return []
    with contextlib.suppress(ExportError, RuntimeError, TypeError):  # not every model computes in float64
        return in_float64(model, x, causes, in_place)
    return compare(*numbers, TOLERANCE[torch.float32])


def tensors_of(model, program):
    return [*model.parameters(), *model.buffers(), *state_of(program)]


def in_float64(model, x, causes, in_place):
    """Of the module in float64, and its own program."""
    x = x.double() if x.is_floating_point() else x
    try:
        program, _ = export(model.double(), x)
        separate(model, program)
        if in_place:
            assign_in_place(program)
        return compare(*both(model, program, x, causes), TOLERANCE[torch.float64])
    finally:
        model.float()


def both(model, program, x, causes):
    with kept(tensors_of(model, program)):
        module = of_module(model, x, causes)
    with kept(tensors_of(model, program)):
        return module, of_program(model, program, x, module)


def of_module(model, x, causes):
    before = [(module, dict(module._buffers)) for module in model.modules()]
    try:
        return of_step(model, x, causes)
    finally:
        for module, buffers in before:  # forward() may replace them
            module._buffers.update(buffers)


def of_step(model, x, causes):
    with causes.watched(), torch.compiler.set_stance("force_eager"):
        loss = loss_of(model, x)
        once = buffers_of(model)
        loss.backward()
    buffers = buffers_of(model)
    causes.read(loss)
    causes.compare(once, buffers)
    gradients = {name: tensor.grad for name, tensor in model.named_parameters()}
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad(), torch.compiler.set_stance("force_eager"):
            evaluation = first_of(model(halved(x)))
    finally:
        for module, training in modes.items():
            module.training = training
    return Numbers(loss.detach(), gradients, buffers, evaluation, changes(buffers, buffers_of(model)))


def buffers_of(model):
    return {name: tensor.detach().clone() for name, tensor in model.named_buffers()}


def changes(before, after):
    return [name for name, tensor in before.items() if name in after and apart(tensor, after[name], 0)]


def of_program(model, program, x, of_module):
    module = program.module()
    loss = loss_of(module, x)
    loss.backward()
    found = dict(module.named_parameters(remove_duplicate=False))
    gradients = {}
    for name, names in names_of(model).items():
        parts = {id(found[each]): found[each].grad for each in names if each in found}.values()
        parts = [part for part in parts if part is not None]
        gradients[name] = sum(parts[1:], parts[0]) if parts else None
    buffers = {name: tensor for name, tensor in buffers_of(module).items() if name in of_module.buffers}
    numbers = Numbers(loss.detach(), gradients, buffers, None)
    with torch.no_grad(), contextlib.suppress(RandomNumbers):
        numbers.evaluation = evaluated(module, x)
        if apart(of_module.evaluation, numbers.evaluation, 0):
            numbers.otherwise = without_causes(module, x, buffers, of_module)
    return numbers


def without_causes(module, x, buffers, of_module):
    """{what may be why evaluations differ: the program's evaluation without it}. Changes the program's buffers."""
    found = {}
    if writes := writes_of(module):
        found[written(writes, of_module.changed)] = evaluated(module, x, writes={})
    if changes(buffers, of_module.buffers):
        own = dict(module.named_buffers())
        for name in buffers:
            if own[name].shape == of_module.buffers[name].shape:
                own[name].copy_(of_module.buffers[name])
        found["because these buffers do"] = evaluated(module, x)
    return found


def evaluated(module, x, writes=None):
    return first_of(Quiet(module, training=False, writes=writes).run(halved(x)))


def halved(x):
    """Other samples than the step had, whose own statistics are not those that the step left in buffers."""
    return x / 2 if x.is_floating_point() else x // 2


def written(writes, changed):
    if changed:
        return (f"because forward() changes {changed[0]} in evaluation, too, and a run changes buffers in training"
                " alone:\n  write `if self.training:` before it")
    name = next(iter(writes.values()))
    return (f"because forward() writes in evaluation what may share memory with {name}, and a run changes buffers in"
            " training alone:\n  write what clone() returns")


def names_of(model):
    """{first name: all names} of the parameters."""
    firsts = {id(tensor): name for name, tensor in model.named_parameters()}
    found = {name: [] for name in firsts.values()}
    for name, tensor in model.named_parameters(remove_duplicate=False):
        found[firsts[id(tensor)]].append(name)
    return found


def loss_of(call, x):
    torch.manual_seed(SEED)
    logits = first_of(call(x.clone()))
    loss = torch.nn.functional.cross_entropy(logits, torch.arange(len(x)) % logits.shape[1])
    if not loss.requires_grad:
        raise ExportError("no parameter gets a gradient: nothing would be trained")
    return loss


def compare(module, program, tolerance):
    """Differences of more than `tolerance`; 0: any."""
    found = []
    if apart(module.loss, program.loss, tolerance):
        found.append(Difference("loss", f"loss: {module.loss:.6g} of the module, {program.loss:.6g} of its program"))
    found += compare_named("gradients", module.gradients, program.gradients, tolerance)
    found += compare_named("buffers", module.buffers, program.buffers, tolerance)
    ours, theirs = module.evaluation, program.evaluation
    if theirs is not None and apart(ours, theirs, tolerance):
        text = f"by up to {(ours - theirs).abs().max():.3g}" if ours.shape == theirs.shape else "in their shapes"
        causes = [cause for cause, other in program.otherwise.items() if not apart(ours, other, tolerance)]
        cause = f", {causes[0]}" if causes else "; forward() does something else where self.training is false"
        found.append(Difference("evaluation", f"evaluation: outputs differ {text}{cause}"))
    return found


def compare_named(kind, ours, theirs, tolerance):
    measured = [real(each) for each in ours.values() if each is not None and each.numel() and is_real(each)]
    scale = max((float(each.abs().max()) for each in measured), default=0.0)
    names = [name for name, each in reversed(ours.items()) if apart(each, theirs.get(name), tolerance, scale)]
    if not names:
        return []
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return [Difference(kind, f"{kind}, of {len(names)} of {len(ours)} tensors: {', '.join(names[:SHOWN])}{more}")]


def apart(ours, theirs, tolerance, scale=0.0):
    """None is 0: of a parameter that is not used. Integers and booleans are equal or not."""
    if ours is None or theirs is None:
        other = theirs if ours is None else ours
        return other is not None and bool(other.any())
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return True
    if bool(((ours == theirs) | ((ours != ours) & (theirs != theirs))).all()):
        return False
    if not is_real(ours):
        return True
    ours, theirs = real(ours).double(), real(theirs).double()
    return not (ours - theirs).abs().max() <= tolerance * max(float(ours.abs().max()), scale)


def is_real(tensor):
    return tensor.is_floating_point() or tensor.is_complex()


def real(tensor):
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


class Causes:
    """What a module does to gradients that no graph of operators shows, as the check of a step meets it."""

    def __init__(self, model):
        self.found = {}
        for name, module in model.named_modules():
            if module._backward_hooks or module._backward_pre_hooks:
                self.add(f"backward hooks of {name or 'the model'}")
        for name, tensor in model.named_parameters():
            if tensor._backward_hooks or tensor._post_accumulate_grad_hooks:
                self.add(f"a gradient hook of {name}")

    def add(self, text):
        self.found.setdefault(text)

    @contextlib.contextmanager
    def watched(self):
        """Notes hooks that forward() registers."""
        plain = torch.Tensor.register_hook

        def register(tensor, hook):
            line = traceback.extract_stack(limit=2)[0]
            self.add(f"register_hook() of a tensor ({line.filename}:{line.lineno})")
            return plain(tensor, hook)

        torch.Tensor.register_hook = register
        try:
            yield
        finally:
            torch.Tensor.register_hook = plain

    def read(self, loss):
        """Notes backward functions that are Python's."""
        seen, next_ones = set(), [loss.grad_fn]
        while next_ones:
            node = next_ones.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            if isinstance(node, torch.autograd.function.BackwardCFunction):
                self.add(f"torch.autograd.Function {type(node).__name__.removesuffix('Backward')}")
            next_ones += [following for following, _ in node.next_functions]

    def compare(self, once, buffers):
        """Notes what changes after forward(), which is then run again."""
        if names := changes(once, buffers):
            self.add(f"a backward pass that runs forward() again (torch.utils.checkpoint) and changes {names[0]} twice")

    def text(self):
        return ", ".join(self.found)
