"""analysis/batch_norms.py, which evaluates a checkpoint with several running statistics, on a made checkpoint and made
images."""

import copy
import gzip
import pathlib
import sys
import tempfile
import unittest

import safetensors.torch
import torch
import torchvision

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "analysis"))
import batch_norms  # noqa: E402

IMAGES, BATCH, WORKERS = 24, 8, 2


def statistics_of(model):
    return {name: buffer.clone() for name, buffer in model.named_buffers()}


def scrambled(buffers):
    """Other running statistics."""
    found = {}
    for name, buffer in buffers.items():
        if name.endswith("running_mean"):
            buffer = 0.1 * torch.randn_like(buffer)
        elif name.endswith("running_var"):
            buffer = 0.01 + torch.rand_like(buffer)
        found[name] = buffer
    return found


def logits(model, buffers, images):
    model.load_state_dict(buffers, strict=False)
    with torch.inference_mode():
        return torch.cat([model(part) for part in images.split(BATCH)])


class Evaluation(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_images_are_padded_with_black_and_normalised(self):
        (self.folder / "mnist").mkdir()
        pixels = bytearray(3 * 28 * 28)
        pixels[28 * 28], pixels[-1] = 255, 51  # the first of image 1, and the last of image 2
        with gzip.open(self.folder / "mnist" / "t10k-images-idx3-ubyte.gz", "wb") as file:
            file.write(bytes(16) + pixels)
        (self.folder / "mnist" / "t10k-labels-idx1-ubyte").write_bytes(bytes(8) + bytes([7, 2, 1]))
        images, labels = batch_norms.read_mnist(self.folder, 0)
        self.assertEqual((tuple(images.shape), labels.tolist()), ((3, 3, 32, 32), [7, 2, 1]))
        for (image, row, column), value in {(0, 2, 2): 0, (1, 2, 2): 1, (1, 0, 0): 0, (2, 29, 29): 0.2}.items():
            normal = torch.full((3,), (value - 0.1307) / 0.3081)
            torch.testing.assert_close(images[image, :, row, column], normal)
        self.assertEqual(batch_norms.read_mnist(self.folder, 2)[1].tolist(), [7, 2])
        with self.assertRaisesRegex(SystemExit, "--images 4: .* has 3 test images"):
            batch_norms.read_mnist(self.folder, 4)
        with self.assertRaisesRegex(SystemExit, "has neither t10k-images-idx3-ubyte nor"):
            batch_norms.read_mnist(self.folder / "mnist", 0)

    def test_statistics_replace_each_other(self):
        tensors = {"parameters/norm.weight": torch.ones(1)}
        for worker, (mean, var) in enumerate([(1.0, 4.0), (3.0, 8.0)]):
            tensors[f"buffers/{worker}/norm.running_mean"] = torch.tensor([mean])
            tensors[f"buffers/{worker}/norm.running_var"] = torch.tensor([var])
            tensors[f"buffers/{worker}/norm.num_batches_tracked"] = torch.tensor(7)
        names = ("norm.running_mean", "norm.running_var")
        found = {
            statistics: [buffers[name].item() for name in names]
            for statistics, buffers in batch_norms.running_statistics(tensors, WORKERS).items()
        }
        self.assertEqual(found, {"averaged": [2, 6], "worker": [1, 4], "initial": [0, 1]})

    def test_a_checkpoint_is_evaluated_with_each(self):
        torch.manual_seed(1)
        model = torchvision.models.densenet121(num_classes=batch_norms.CLASSES)
        images = torch.randn(IMAGES, 3, 32, 32)
        initial = statistics_of(model)
        of_workers = [scrambled(initial) for _ in range(WORKERS)]
        self.save(model, of_workers)
        averaged = {name: batch_norms.mean_of([of[name] for of in of_workers]) for name in initial}
        predictions = {
            "averaged": logits(model.eval(), averaged, images),
            "worker": logits(model.eval(), of_workers[0], images),
            "initial": logits(model.eval(), initial, images),
            "batch": logits(copy.deepcopy(model).train(), initial, images),
        }
        answers = {statistics: of.argmax(1) for statistics, of in predictions.items()}
        self.assertEqual(len({tuple(of.tolist()) for of in answers.values()}), 4, "they differ")
        for statistics, labels in answers.items():
            found = batch_norms.accuracies("densenet121", self.folder, WORKERS, images, labels, BATCH)
            expected = {other: (of == labels).float().mean().item() for other, of in answers.items()}
            self.assertEqual(found, expected, statistics)

    def save(self, model, of_workers):
        """One file per worker; the first has the parameters."""
        for worker, buffers in enumerate(of_workers):
            tensors = {f"buffers/{worker}/{name}": buffer for name, buffer in buffers.items()}
            if worker == 0:
                tensors |= {f"parameters/{name}": tensor.detach() for name, tensor in model.named_parameters()}
            safetensors.torch.save_file(tensors, self.folder / f"rank-{worker:04}.safetensors")


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
