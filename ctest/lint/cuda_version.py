"""modules/cmake/CudaVersion.cmake refuses what is of another CUDA major version than LibTorch, and names both."""

import pathlib
import subprocess
import sys
import unittest

MODULE = pathlib.Path(__file__).resolve().parents[2] / "modules/cmake/CudaVersion.cmake"


def configured(toolkit, nccl, libtorch):
    values = {
        "CUDAToolkit_VERSION": toolkit, "CUDAToolkit_BIN_DIR": "/opt/cuda/bin", "NCCL_CUDA_VERSION": nccl,
        "NCCL_VERSION": "2.28.9", "NCCL_LIBRARY": "/opt/nccl/lib/libnccl.so", "LibTorch_CUDA_VERSION": libtorch,
        "LibTorch_VERSION": "2.11.0", "LibTorch_ROOT": "/opt/torch",
    }  # fmt: skip
    words = [f"-D{name}={value}" for name, value in values.items()]
    ended = subprocess.run(["cmake", *words, "-P", MODULE], capture_output=True, text=True, timeout=20)
    return ended.returncode, " ".join(ended.stderr.split())


class CudaVersion(unittest.TestCase):
    def test_other_majors(self):
        for toolkit, nccl, libtorch, words in [
            ("12.6.85", "12.6", "13.0", ["in /opt/cuda/bin is of CUDA 12.6.85", "for CUDA 13.0", "module of CUDA 13"]),
            ("11.8.89", "", "13.0", ["of CUDA 11.8.89", "CUDA 13.0"]),
            ("14.0.1", "13.0", "13", ["of CUDA 14.0.1", "CUDA 13."]),
            ("13.0.88", "12.8", "12.8", ["of CUDA 13.0.88", "module of CUDA 12"]),
            ("13.0.88", "12.9", "13.0", ["/opt/nccl/lib/libnccl.so is of CUDA 12.9", "nvidia-nccl-cu13"]),
        ]:
            with self.subTest(toolkit=toolkit, nccl=nccl, libtorch=libtorch):
                code, told = configured(toolkit, nccl, libtorch)
                self.assertNotEqual(code, 0)
                for word in words:
                    self.assertIn(word, told)

    def test_the_same_major(self):
        for versions in [
            ("13.0.88", "13.0", "13.0"),
            ("13.2.1", "", "13.0"),
            ("12.6.85", "12.8", "12.4"),
            ("13.1", "13.0", "13"),
        ]:
            with self.subTest(versions):
                self.assertEqual(configured(*versions), (0, ""))


if __name__ == "__main__":
    sys.exit(not unittest.main(exit=False, verbosity=2).result.wasSuccessful())
