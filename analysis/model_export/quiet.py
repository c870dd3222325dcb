"""Runs a program as stratagem does, without random numbers: in training and in evaluation."""

import torch

from .buffers import writes_of

DROPS = {"dropout": "p", "dropout_": "p", "feature_dropout": "p", "feature_dropout_": "p",
         "scaled_dot_product_attention": "dropout_p", "lstm": "dropout", "gru": "dropout", "rnn_tanh": "dropout",
         "rnn_relu": "dropout"}
NORMS = {"batch_norm": "training", "instance_norm": "use_input_stats"}  # with an argument that says whose statistics


class RandomNumbers(Exception):
    """An operator that draws random numbers which cannot be left out."""


class Quiet(torch.fx.Interpreter):
    """Drops nothing and keeps all samples. In evaluation, norms use running statistics, and no buffer changes."""

    def __init__(self, module, training, writes=None):
        """`writes`: nodes that write a buffer, also of the graph around this one."""
        super().__init__(module)
        self.training = training
        self.writes = writes_of(module) if writes is None else writes

    def run_node(self, node):
        if node.op == "call_module":
            return None  # checks of shapes
        if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
            return super().run_node(node)
        name = node.target._schema.name.removeprefix("aten::")
        args, kwargs = self.fetch_args_kwargs_from_env(node)
        if node in self.writes and not self.training:
            return args[0]
        if name == "bernoulli_" and node not in self.writes:
            return args[0].fill_(1)
        if scales_a_mask(node, name):
            return args[0]
        given = arguments(node.target, args, kwargs)
        if name in DROPS:
            given[DROPS[name]] = 0.0
        elif torch.Tag.nondeterministic_seeded in node.target.tags:
            raise RandomNumbers(f"operator {name} draws random numbers")
        if name in NORMS and not self.training and given.get("running_mean") is not None:
            given[NORMS[name]] = False
        return called(node.target, given)

    def call_function(self, target, args, kwargs):
        """Of what has a graph of its own, such as torch.no_grad()."""
        inner = [Quiet(each, self.training, self.writes).run if isinstance(each, torch.fx.GraphModule) else each
                 for each in args]
        return super().call_function(target, tuple(inner), kwargs)


def scales_a_mask(node, name):
    """Whether it divides a mask of bernoulli_ by the probability that a sample is kept."""
    mask = node.args[0] if node.args else None
    if name not in ("div", "div_") or not isinstance(mask, torch.fx.Node):
        return False
    if not isinstance(mask.target, torch._ops.OpOverload) or mask.target._schema.name != "aten::bernoulli_":
        return False
    keeps = arguments(mask.target, mask.args, mask.kwargs).get("p", 0.5)
    return len(node.args) > 1 and node.args[1] == keeps


def arguments(operator, args, kwargs):
    names = [argument.name for argument in operator._schema.arguments]
    return dict(zip(names, args)) | dict(kwargs)


def called(operator, given):
    """With the arguments in order, as far as they have no defaults."""
    args, kwargs, gap = [], {}, False
    for argument in operator._schema.arguments:
        gap = gap or argument.name not in given
        if argument.name not in given:
            continue
        if gap or argument.kwarg_only:
            kwargs[argument.name] = given[argument.name]
        else:
            args.append(given[argument.name])
    return operator(*args, **kwargs)
