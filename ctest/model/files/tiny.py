"""The model in the files beside this one, which tests read: of every version of torch whose files are known.

  python3 analysis/export_model.py ctest/model/files/tiny.py:make --input 1x28x28 -o ctest/model/files/tiny-2.11.pt2

Afterwards, folders in stack traces were replaced, and the sample inputs taken out. Only the file of 2.15 has a record
of its first loss.
"""

import torch


class StochasticDepth(torch.nn.Module):
    """As torchvision's, row by row."""

    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        if not self.training:
            return x
        noise = torch.empty([x.shape[0], 1, 1, 1], dtype=x.dtype, device=x.device)
        noise = noise.bernoulli_(1 - self.p)
        noise.div_(1 - self.p)
        return x * noise


class Residual(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = torch.nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm = torch.nn.BatchNorm2d(width)
        self.depth = StochasticDepth(0.3)
        self.relu = torch.nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.depth(self.norm(self.conv(x))) + x)


class Tiny(torch.nn.Module):
    """In-place operators, batch norms, both kinds of random masks, a layer that is used twice, a buffer that is saved
    and one that is not, a view that depends on the number of samples."""

    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Sequential(
            torch.nn.Conv2d(1, 8, 3, stride=2, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(inplace=True)
        )
        self.first, self.second = Residual(8), Residual(8)
        self.mix = torch.nn.Linear(8 * 7 * 7, 16)
        self.norm = torch.nn.LayerNorm(16)
        self.square = torch.nn.Linear(16, 16)
        self.drop = torch.nn.Dropout(0.25)
        self.head = torch.nn.Linear(16, 10)
        self.register_buffer("shift", torch.linspace(-0.1, 0.1, 16))
        self.register_buffer("scale", torch.full((16,), 0.5), persistent=False)

    def forward(self, x):
        x = self.second(self.first(self.stem(x)))
        x = torch.nn.functional.max_pool2d(x, 2)
        x = self.mix(x.view(x.shape[0], 8 * 7 * 7))
        x = self.norm(x) * self.scale + self.shift
        x = torch.nn.functional.gelu(self.square(x))
        return self.head(self.drop(torch.nn.functional.gelu(self.square(x))))


def make():
    torch.manual_seed(7)
    return Tiny()
