"""Evaluates the parameters of a checkpoint on MNIST: in torchvision's model, with several statistics of batch norms.

Images are as the program makes them at 32 pixels. Needs torch, torchvision and safetensors.
"""

import gzip
import sys

import safetensors.torch
import torch
import torchvision

MEAN, STD = 0.1307, 0.3081
BORDER = 2  # 28 pixels become 32
CLASSES = 10


def read_file(folder, name):
    for path, opens in ((folder / name, open), (folder / f"{name}.gz", gzip.open)):
        if path.exists():
            with opens(path, "rb") as file:
                return bytearray(file.read())
    sys.exit(f"{folder} has neither {name} nor {name}.gz: name the folder that contains mnist/ with --data")


def read_mnist(root, count):
    """The first `count` test images (all, if it is 0) in three equal channels, and their labels."""
    folder = root / "mnist"
    pixels = torch.frombuffer(read_file(folder, "t10k-images-idx3-ubyte"), dtype=torch.uint8, offset=16)
    labels = torch.frombuffer(read_file(folder, "t10k-labels-idx1-ubyte"), dtype=torch.uint8, offset=8).long()
    count = count or len(labels)
    if count > len(labels):
        sys.exit(f"--images {count}: {folder} has {len(labels)} test images")
    padded = torch.nn.functional.pad(pixels.view(-1, 1, 28, 28)[:count], [BORDER] * 4)
    images = (padded.float() / 255 - MEAN) / STD
    return images.expand(-1, 3, -1, -1).contiguous(memory_format=torch.channels_last), labels[:count]


def read_checkpoint(folder):
    tensors = {}
    for part in sorted(folder.glob("*.safetensors")):
        tensors |= safetensors.torch.load_file(part)
    return tensors


def below(prefix, tensors):
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def mean_of(tensors):
    return sum(tensors) / len(tensors) if tensors[0].is_floating_point() else tensors[0]


def running_statistics(tensors, workers):
    """{name: buffers}: averaged over the workers, those of worker 0, and the initial ones."""
    of_workers = [below(f"buffers/{worker}/", tensors) for worker in range(workers)]
    first = of_workers[0]
    initial = {name: torch.full_like(buffer, int(name.endswith("running_var"))) for name, buffer in first.items()}
    averaged = {name: mean_of([buffers[name] for buffers in of_workers]) for name in first}
    return {"averaged": averaged, "worker": first, "initial": initial}


def accuracy(model, images, labels, batch):
    with torch.inference_mode():
        predicted = torch.cat([model(part).argmax(1) for part in images.split(batch)])
    return (predicted == labels).float().mean().item()


def accuracies(name, checkpoint, workers, images, labels, batch):
    """{statistics: accuracy}. `batch` has the images that are normalised together by their own statistics."""
    tensors = read_checkpoint(checkpoint)
    model = torchvision.models.get_model(name, num_classes=CLASSES).to(memory_format=torch.channels_last)
    found = {}
    for statistics, buffers in running_statistics(tensors, workers).items():
        model.load_state_dict(below("parameters/", tensors) | buffers, strict=True)
        found[statistics] = accuracy(model.eval(), images, labels, batch)
    # The last, because it changes the running statistics, which it does not use.
    return found | {"batch": accuracy(model.train(), images, labels, batch)}
