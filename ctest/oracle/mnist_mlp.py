"""The multilayer perceptron `mlp` in NumPy, and the samples of MNIST that it is trained with."""

import gzip
from pathlib import Path

import numpy as np

MEAN, STD = 0.1307, 0.3081
LAYERS = ["fc1", "fc2", "fc3"]


def read_idx(path):
    packed = path.with_name(path.name + ".gz")
    content = gzip.decompress(packed.read_bytes()) if packed.exists() else path.read_bytes()
    dimensions = content[3]
    shape = [int.from_bytes(content[4 + 4 * i : 8 + 4 * i], "big") for i in range(dimensions)]
    return np.frombuffer(content[4 + 4 * dimensions :], np.uint8).reshape(shape)


def training_data(folder, subset):
    """The first images, one per row, in float64, scaled in float32 as the program does; and their labels."""
    pixels, labels = (
        read_idx(Path(folder) / "mnist" / f"train-{what}-ubyte")[:subset] for what in ("images-idx3", "labels-idx1")
    )
    scaled = (pixels.reshape(subset, -1).astype(np.float32) / np.float32(255) - np.float32(MEAN)) / np.float32(STD)
    return scaled.astype(np.float64), labels.astype(np.int64)


def gradients(parameters, x, labels):
    """Of the mean cross-entropy."""
    activations = [x]
    for layer in LAYERS:
        y = activations[-1] @ parameters[f"{layer}.weight"].T + parameters[f"{layer}.bias"]
        activations.append(y if layer == LAYERS[-1] else np.maximum(y, 0))
    logits = activations[-1] - activations[-1].max(axis=1, keepdims=True)
    gradient = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    gradient[np.arange(len(labels)), labels] -= 1
    gradient /= len(labels)
    found = {}
    for i, layer in reversed(list(enumerate(LAYERS))):
        found[f"{layer}.weight"] = gradient.T @ activations[i]
        found[f"{layer}.bias"] = gradient.sum(axis=0)
        if i > 0:
            gradient = (gradient @ parameters[f"{layer}.weight"]) * (activations[i] > 0)
    return found
