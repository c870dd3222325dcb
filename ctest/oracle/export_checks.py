"""What analysis/export_model.py accepts, changes and refuses, in one process: small nets, each with something that
torch.export or a file loses. What it accepts trains as the module does: the file is loaded again, and after three steps
of SGD its parameters and buffers are those of the module. With --program, stratagem finds the first loss again.
"""

import argparse
import collections
import contextlib
import functools
import io
import logging
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile

import torch
from torch.nn.functional import cross_entropy

import buffer_nets
import export_nets as nets

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "analysis")]

import export_model  # noqa: E402
from model_export import ExportError  # noqa: E402
from model_export.graph import first_of  # noqa: E402
from model_export.module import unwrapped  # noqa: E402

SHAPE, STEPS, RATE = "3x8x8", 3, 0.1
Case = collections.namedtuple("Case", "make says accept frozen", defaults=((), False))
EQUAL = "equal those of the module"
# {name: a net that is exported, and what the program says of it}
ACCEPTED = {
    "plain": Case(nets.Base, EQUAL),
    "a write through a view": Case(nets.ViewWrite, EQUAL),
    "a write through a view of a convolution": Case(nets.ConvolutionViewWrite, EQUAL),
    "strides of the export": Case(nets.Strided, EQUAL),
    "float32 asked for": Case(nets.SumInFloat32, EQUAL),
    "dropout": Case(nets.Drops, EQUAL),
    "dropout of an LSTM": Case(nets.Lstm, EQUAL),
    "another rounding in evaluation": Case(nets.Encoder, EQUAL),
    "stochastic depth": Case(nets.Depth, EQUAL),
    "a forward hook": Case(nets.forward_hook, EQUAL),
    "several outputs": Case(nets.Auxiliary, "only the first output is used; one other (auxiliary heads) left out"),
    "outputs by name": Case(nets.NamedOutputs, "only output 'logits', the first, is used; one other"),
    "tied weights": Case(nets.Tied, EQUAL),
    "without gradients inside": Case(nets.NoGrad, EQUAL),
    # Parameters that do not train.
    "a frozen body": Case(nets.frozen("body"), "8 parameters do not require gradients, such as body.0.weight"),
    "a frozen head": Case(nets.frozen("head"), "2 parameters do not require gradients"),
    "a frozen norm": Case(nets.frozen("body.1"), "2 parameters do not require gradients"),
    # Own buffers.
    "an average in a buffer": Case(nets.Average, EQUAL),
    "a count in a buffer": Case(nets.Counts, EQUAL),
    "a buffer that is replaced": Case(nets.Replaced, EQUAL),
    **{f"a buffer, {change.__name__}": Case(functools.partial(buffer_nets.Reads, change), EQUAL)
       for change in buffer_nets.IN_TRAINING},
    "a buffer that is always assigned": Case(functools.partial(buffer_nets.AlwaysMoves, buffer_nets.assign), EQUAL),
    "a buffer that is always moved": Case(functools.partial(buffer_nets.AlwaysMoves, buffer_nets.move),
                                          "differ, as accepted:", accept=("evaluation",)),
    "a copy of a buffer that is written": Case(buffer_nets.WritesACopy, "differ, as accepted:", accept=("evaluation",)),
    **{f"a buffer of {kind}": Case(functools.partial(buffer_nets.OfType, kind), EQUAL) for kind in buffer_nets.TYPES},
    # Parameters and buffers that forward() reaches by other ways.
    "a list": Case(nets.InList, EQUAL),
    "a dictionary": Case(nets.InDictionary, EQUAL),
    "a tuple with a buffer": Case(nets.InTuple, EQUAL),
    "a closure": Case(nets.InClosure, EQUAL),
    "a partial function": Case(nets.InPartial, EQUAL),
    "a transposed view": Case(nets.Transposed, EQUAL),
    "a parameter of nobody": Case(nets.Nobodys, "ws holds a parameter that model.parameters() lacks"),
    "a module of nobody": Case(nets.ListOfModules, "layers holds a parameter that model.parameters() lacks"),
    # Evaluation mode.
    "exported in evaluation": Case(lambda: nets.Base().eval(), "2 layers, body.1 first, are in evaluation mode:"
                                                               " exported in training mode"),
    "kept in evaluation": Case(lambda: nets.Base().eval(), "2 layers, body.1 first, are in evaluation mode: batch norms"
                                                           " there do not learn", frozen=True),
    "one frozen norm": Case(nets.frozen_norm, "body.1 is in evaluation mode: batch norms", frozen=True),
    "a net that keeps norms frozen": Case(nets.KeepsFrozen, "body.1 is in evaluation mode: batch norms"),
    # Wrappers.
    "torch.compile": Case(lambda: torch.compile(nets.Base()), "exports what OptimizedModule wraps, Base"),
    "compiled in place": Case(nets.compiled_in_place, EQUAL),
    "a compiled part": Case(nets.compiled_part, "body: exports what OptimizedModule wraps, Sequential"),
    "a compiled function": Case(nets.CompiledFunction, EQUAL),
    "DataParallel": Case(lambda: torch.nn.DataParallel(nets.Base()), "exports what DataParallel wraps, Base"),
    "DistributedDataParallel": Case(nets.distributed, "exports what DistributedDataParallel wraps, Base"),
    "an average of models": Case(lambda: torch.optim.swa_utils.AveragedModel(nets.Base()),
                                 "exports what AveragedModel wraps, Base"),
    # Types and layouts.
    "bfloat16": Case(lambda: nets.Base().bfloat16(), "14 tensors were converted to float32, such as body.0.weight of"
                                                     " bfloat16"),
    "half": Case(lambda: nets.Base().half(), "of float16"),
    "float64": Case(lambda: nets.Base().double(), "of float64"),
    "channels_last": Case(lambda: nets.Base().to(memory_format=torch.channels_last), EQUAL),
    "a transposed parameter": Case(nets.TransposedParameter, EQUAL),
    "parts of one tensor": Case(nets.Flat, EQUAL),
    "lazy layers": Case(nets.Lazy, "8 tensors of lazy layers, such as body.0.weight, got their sizes"),
    "a weight that is no number": Case(nets.not_finite, "1 parameters have values that are not finite, such as"
                                                        " head.bias"),
    "few samples": Case(nets.UpTo63, "the program takes 1 to 63 samples at once"),
    # What differs, and is meant.
    "accepted gradients": Case(nets.Rounds, "differ, as accepted:", accept=("gradients",)),
    "accepted evaluation": Case(nets.SoftmaxInEvaluation, "differ, as accepted:", accept=("evaluation",)),
}
# {name: a net that is refused, and what the message says}
REFUSED = {
    "a backward of Python's": (nets.Rounds, ["gradients, of ", "torch.autograd.Function Round", "--accept gradients"]),
    "a reversed gradient": (nets.Reverses, ["gradients, of ", "torch.autograd.Function Reverse"]),
    "a clamped gradient": (nets.Clamps, ["gradients, of ", "torch.autograd.Function Clamp"]),
    "a scaled loss of its own": (nets.AddsLoss, ["gradients, of ", "torch.autograd.Function AddLoss"]),
    "a hook of a tensor": (nets.TensorHook, ["gradients, of ", "register_hook() of a tensor (", "export_nets.py:"]),
    "a hook of a module": (nets.module_hook, ["gradients, of ", "backward hooks of body.4"]),
    "a hook before a module": (nets.module_pre_hook, ["gradients, of ", "backward hooks of head"]),
    "a hook of a parameter": (nets.parameter_hook, ["gradients, of 1 of 10 tensors: head.weight", "a gradient hook"]),
    "a hook after a parameter": (nets.accumulated_hook, ["gradients, of 1 of 10 tensors: head.weight"]),
    "softmax in evaluation": (nets.SoftmaxInEvaluation, ["evaluation: outputs differ", "self.training"]),
    "dropout in evaluation": (nets.AlwaysDrops, ["evaluation: outputs differ"]),
    "a mean in evaluation": (nets.AveragesInEvaluation, ["evaluation: outputs differ"]),
    "another shape in evaluation": (nets.FeaturesInEvaluation, ["evaluation: outputs differ in their shapes"]),
    "a buffer that is moved in evaluation": (functools.partial(buffer_nets.AlwaysMoves, buffer_nets.move), [
        "because forward() changes seen in evaluation, too", "write `if self.training:` before it"]),
    "a copy that is written in evaluation": (buffer_nets.WritesACopy, [
        "may share memory with seen", "write what clone()"]),
    "another value than the buffer's": (functools.partial(buffer_nets.Reads, buffer_nets.assign_and_use_another), [
        "evaluation: outputs differ", "forward() does something else where self.training is false"]),
    "a buffer of random numbers": (functools.partial(buffer_nets.Reads, buffer_nets.fill_with_noise),
                                   ["fills seen with random numbers"]),
    "a norm in a checkpoint": (nets.Checkpoints, [
        "buffers, of 6 of 6 tensors", ", because these buffers do\n", "runs forward() again (torch.utils.checkpoint)"]),
    "alternating steps": (nets.Alternates, ["does not train as the module does"]),
    "a selected view": (nets.Selected, ["row is a view of w", "take the view in forward()"]),
    "two parameters in one place": (nets.TwoInOne, ["a and b are two tensors in the same memory", "self.b = self.a"]),
    "a buffer that is a parameter": (nets.BufferOfParameter, ["w and copy are two tensors in the same memory"]),
    "the length of a tensor": (nets.Length, ["write x.shape[0] for len(x), n // 4 for int(n / 4)"]),
    "a rounded number of samples": (nets.RoundedSamples, ["write x.shape[0] for len(x)"]),
    "a branch by data": (nets.DataBranch, ["torch.where"]),
    "a mean of all batches": (nets.mean_of_all_batches, [
        "batch norm body.1 has momentum=None", "num_batches_tracked", "momentum=0.1"]),
    "a number out of a tensor": (nets.ReadsANumber, ["forward() reads a number out of a tensor"]),
    "two inputs": (nets.TwoInputs, ["forward(ids, mask) takes 2 inputs"]),
    "an image": (nets.Image, ["first output is [samples, 16, 4, 4]", "[samples, classes]"]),
    "one logit": (nets.OneLogit, ["one logit", "make it two"]),
    "no evaluation": (nets.FailsInEvaluation, ["with 4 samples fails: NotImplementedError: later", "--no-check"]),
    "conversions inside": (nets.converts_inside, ["leave out conversions"]),
    "nothing to train": (nets.frozen(""), ["no parameter gets a gradient"]),
    "no values": (lambda: nets.Base().to("meta"), ["body.0.weight has no values"]),
    "a lazy layer that does not fit": (nets.LazyOfOtherShape, ["body.0.weight is of a lazy layer", "correct --input"]),
    "a lazy layer of nobody": (nets.LazyUnused, ["unused.weight is of a lazy layer that forward() does not use"]),
    "complex": (nets.Complex, ["parameter c is complex"]),
    "a complex buffer": (functools.partial(buffer_nets.OfType, torch.complex64), [
        "buffer seen is complex", "view_as_real"]),
    "unsigned integers": (functools.partial(buffer_nets.OfType, torch.uint32), ["buffer seen is of uint32", "int64"]),
}


def write(model, file, accept=(), frozen=False, no_check=False):
    """What the program says."""
    options = argparse.Namespace(input=SHAPE, tokens=None, output=file, accept=accept, frozen=frozen,
                                 no_check=no_check, program=file.parent / "none")
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
        export_model.write(model, torch.randn(2, 3, 8, 8), options)
    return said.getvalue()


def state_of(module):
    return {name: tensor.detach().clone() for name, tensor in (*module.named_parameters(remove_duplicate=False),
                                                               *module.named_buffers())}


def train(module, seed):
    """Parameters and buffers after three steps."""
    optimizer = torch.optim.SGD(module.parameters(), lr=RATE)
    random = torch.Generator().manual_seed(seed)
    for step in range(STEPS):
        x, labels = torch.randn(6, 3, 8, 8, generator=random), torch.randint(10, (6,), generator=random)
        torch.manual_seed(seed + step)
        outputs = module(x)
        logits = first_of(outputs)
        optimizer.zero_grad()
        cross_entropy(logits, labels).backward()
        optimizer.step()
    return state_of(module)


def check_file(model, file, case):
    """Tensors are contiguous and alone; the loaded program trains as the module does."""
    with zipfile.ZipFile(file) as archive:
        record = next(name for name in archive.namelist() if name.endswith("extra/stratagem.json"))
        assert b'"first_loss"' in archive.read(record)
    if torch.__version__ < "2.9":
        return  # it loads what it pickled itself
    program = torch.export.load(file)
    for name, tensor in program.state_dict.items():
        assert tensor.is_contiguous(), name
        assert tensor.dtype == torch.float32 or not tensor.is_floating_point(), name
    if case.accept == ("gradients",):
        return
    with torch.compiler.set_stance("force_eager"):
        theirs, ours = train(model, 1), train(program.module(), 1)
    for name, tensor in theirs.items():
        assert torch.allclose(tensor, ours[name], rtol=1e-5, atol=1e-6, equal_nan=True), name


def check_first_loss(file, program):
    done = subprocess.run([program, "model", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0 or "drops between its layers" in done.stderr, done.stderr


def check_accepted(name, folder, program):
    case, file = ACCEPTED[name], folder / "net.pt2"
    torch.manual_seed(1)
    model = case.make()
    said = write(model, file, case.accept, case.frozen)
    assert case.says in said, said
    check_file(unwrapped(model, []), file, case)
    if program:
        check_first_loss(file, program)


def check_refused(name, folder, _):
    make, words = REFUSED[name]
    file = folder / "refused.pt2"
    torch.manual_seed(1)
    try:
        write(make(), file)
    except ExportError as problem:
        for word in words:
            assert word in str(problem), f"{word} is not in: {problem}"
    else:
        raise AssertionError("it was accepted")
    assert not list(folder.glob("*refused*")), "a file was left"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="stratagem-export-") as folder:
        for table, check in (ACCEPTED, check_accepted), (REFUSED, check_refused):
            for name in table:
                begin = time.monotonic()
                try:
                    check(name, pathlib.Path(folder), options.program)
                    print(f"ok      {name} ({time.monotonic() - begin:.1f} s)", flush=True)
                except Exception as problem:  # the next ones are checked all the same
                    failed += 1
                    print(f"FAILED  {name}: {type(problem).__name__}: {problem}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
