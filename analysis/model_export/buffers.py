"""What a program does to buffers. stratagem leaves out in evaluation whatever writes one. It tells these operators by
their schemas, before it runs anything (lib/model/exported/flow.cpp), and so does this."""

import operator

import torch

from . import ExportError

SHARING = {"dropout", "feature_dropout", "type_as", "broadcast_tensors", "meshgrid", "atleast_1d", "atleast_2d",
           "atleast_3d", "sum_to_size", "_unsafe_view"}  # may return what they get, though their schemas do not say so


class Memory:
    """The nodes of a graph in groups that may share memory, and `writes`: {node that writes a buffer: its name}."""

    def __init__(self, module, places):
        """`places`: {node: name} of the buffers that the state_dict holds. Others are constants."""
        self.parents, self.results, self.writing = {}, {}, []
        self.read(module)
        names = {self.group(node): name for node, name in places.items()}
        self.writes = {node: names[self.group(node.args[0])] for node in self.writing
                       if self.group(node.args[0]) in names}

    def group(self, node):
        while node in self.parents:
            node = self.parents[node]
        return node

    def join(self, one, other):
        if not isinstance(one, torch.fx.Node) or not isinstance(other, torch.fx.Node):
            return
        one, other = self.group(one), self.group(other)
        if one is not other:
            self.parents[one] = other

    def read(self, module):
        for node in module.graph.nodes:
            if node.op != "call_function":
                continue
            if isinstance(node.target, torch._ops.OpOverload):
                self.call(node)
            elif node.target is operator.getitem:
                self.part(node)
            else:
                self.enter(node, module)

    def call(self, node):
        if node.target._schema.is_mutable:
            self.writing.append(node)
        for value in aliased(node):
            self.join(node, value)

    def part(self, node):
        source, index = node.args
        if source in self.results:
            self.join(node, self.results[source][index])
        elif isinstance(source.target, torch._ops.OpOverload) and aliased(source):
            self.join(node, source)

    def enter(self, node, module):
        """What has a graph of its own, such as torch.no_grad(): (..., graph, its inputs...)."""
        graphs = [index for index, each in enumerate(node.args)
                  if isinstance(each, torch.fx.Node) and each.op == "get_attr"
                  and isinstance(getattr(module, str(each.target), None), torch.fx.GraphModule)]
        if not graphs:
            return
        inner = getattr(module, node.args[graphs[0]].target)
        places = [each for each in inner.graph.nodes if each.op == "placeholder"]
        for place, given in zip(places, node.args[graphs[0] + 1:]):
            self.join(place, given)
        self.read(inner)
        result = inner.graph.output_node().args[0]
        if isinstance(result, torch.fx.Node):
            self.join(node, result)
        else:
            self.results[node] = result


def aliased(node):
    """Arguments that may share memory with what the operator returns."""
    schema = node.target._schema
    shares = schema.name.removeprefix("aten::").removesuffix("_") in SHARING
    if not shares and not any(each.alias_info for each in schema.returns):
        return []
    given = dict(zip([each.name for each in schema.arguments], node.args)) | dict(node.kwargs)
    values = [given[each.name] for each in schema.arguments
              if each.name in given and (shares or each.alias_info is not None)]
    flat = [each for value in values for each in (value if isinstance(value, (list, tuple)) else [value])]
    return [each for each in flat if isinstance(each, torch.fx.Node)]


def writes_of(module):
    """{node that writes a buffer: its name}, of what program.module() returns."""
    state = module.state_dict()
    names = {name for name, _ in module.named_buffers() if name in state}
    return Memory(module, {node: node.target for node in module.graph.nodes
                           if node.op == "get_attr" and node.target in names}).writes


def refuse_random(program):
    """A mask in a buffer would differ between the ranks of a run."""
    for node, name in writes_of(program.module()).items():
        if torch.Tag.nondeterministic_seeded in node.target.tags:
            raise ExportError(f"forward() fills {name} with random numbers, which would not be the same on every rank\n"
                              "  random numbers are known as dropout, and as bernoulli_ divided by its probability")


def assign_in_place(program):
    """`self.seen = mean` is a copy at the end of the graph, and `self.seen` after it is `mean`, in evaluation as well.
    Makes the copy where `mean` is, and its readers read the buffer: the same in training; in evaluation, in which
    nothing is copied, they read what it was. The copies, for assign_at_end()."""
    specs = [spec for spec in program.graph_signature.input_specs if spec.kind.name == "BUFFER" and spec.persistent]
    names = {spec.arg.name: spec.target for spec in specs}
    places = {node: names[node.name] for node in program.graph.nodes if node.name in names}
    memory = Memory(program.graph_module, places)
    copies = [node for node in memory.writes if node.target is torch.ops.aten.copy_.default
              and node.graph is program.graph and is_assignment(node, memory)]
    for copy in copies:
        buffer, value = copy.args[:2]
        value.append(copy)
        value.replace_all_uses_with(copy, delete_user_cb=lambda user, copy=copy: user is not copy)
        copy.meta["val"] = buffer.meta["val"]
    program.graph.lint()
    program.graph_module.recompile()
    return copies


def assign_at_end(program, copies):
    """Undoes assign_in_place()."""
    for copy in copies:
        copy.replace_all_uses_with(copy.args[1])
        program.graph.output_node().prepend(copy)
    program.graph.lint()
    program.graph_module.recompile()


def is_assignment(copy, memory):
    """Whether it copies into a whole buffer what others use, and nothing uses the buffer's earlier value after that was
    computed, or writes it."""
    buffer, value = copy.args[:2]
    if buffer.op != "placeholder" or not isinstance(value, torch.fx.Node):
        return False
    if value.op != "call_function" or memory.group(value) is memory.group(buffer) or len(value.users) < 2:
        return False
    ours, theirs = value.meta["val"], buffer.meta["val"]
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype or copy.graph.output_node() in value.users:
        return False
    if any(memory.group(node.args[0]) is memory.group(value) for node in memory.writing):
        return False
    order = {node: place for place, node in enumerate(copy.graph.nodes)}
    uses = [user for node in order if memory.group(node) is memory.group(buffer) for user in (node, *node.users)]
    return all(user is copy or order[user] < order[value] or user is value for user in uses)
