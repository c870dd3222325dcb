"""Where `modules/bootstrap.sh build --gpu` finds CUDA: in toolkits and modules that this test makes up, with libraries
that a compiler has linked, so that `readelf` and `ldd` read real ones."""

import os
import pathlib
import re
import shutil
import subprocess
import unittest

import harness

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENVIRONMENT = 3
# What bootstrap.sh gives modules/lib/cuda.sh; unpack() notes what would be downloaded, and makes its folders.
PRELUDE = f"""set -euo pipefail
fail() {{ echo "$*" >&2; exit {ENVIRONMENT}; }}
pins_of() {{ printf '%s\\n' "$@" | cksum | cut -d' ' -f1; }}
unpack() {{
  mkdir -p "$1/nvidia/cu13/lib" "$1/nvidia/nccl/lib" "$1/nvidia/cudnn/lib"
  touch "$1/nvidia/cu13/lib/libcudart.so.13"
  echo "unpacked ${{*:3}}"
}}
deps=$PWD/deps
source {ROOT}/modules/lib/cuda.sh
"""
TELL = """
printf 'toolkit %s\\nnccl %s\\n' "$cuda_toolkit" "$nccl_root"
printf 'wheel %s\\n' ${wheels[@]+"${wheels[@]}"}
printf 'folder %s\\n' ${cuda_library_dirs[@]+"${cuda_library_dirs[@]}"}
"""
OF_TOOLKIT = ["libcudart.so.13", "libcublas.so.13", "libcublasLt.so.13", "libcufft.so.12", "libcurand.so.10",
              "libcusolver.so.12", "libcusparse.so.12", "libnvrtc.so.13", "libcupti.so.13", "libcufile.so.0"]
OTHERS = ["libcudnn.so.9", "libcusparseLt.so.0", "libnvshmem_host.so.3", "libnccl.so.2"]


@unittest.skipUnless(shutil.which("cc") and shutil.which("readelf"), "needs cc and readelf")
class GpuPackages(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        for name in OF_TOOLKIT + OTHERS:
            self.link(f"all/{name}")
        self.libtorch("libtorch", "13.0")

    def link(self, path, needed=(), source=""):
        """A shared library, or a program if it has a source, that loads others from all/."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        kind = [] if source else ["-shared", f"-Wl,-soname,{target.name}"]
        subprocess.run(
            ["cc", *kind, "-o", target, "-xc", "-", "-xnone", "-Wl,--no-as-needed",
             *(f"all/{name}" for name in needed)],
            cwd=self.folder, input=source, text=True, check=True,
        )  # fmt: skip

    def libtorch(self, folder, cuda, needed=(*OF_TOOLKIT, *OTHERS)):
        self.link(f"{folder}/lib/libtorch_cuda.so", needed)
        self.link(f"{folder}/lib/libc10_cuda.so")
        (self.folder / folder / "version.py").write_text(f"cuda: Optional[str] = '{cuda}'\n")

    def toolkit(self, folder, release, libraries=(), nccl=False):
        """Its nvcc says what the real one says."""
        home = self.folder / folder
        for name in "bin", "lib64", "include":
            (home / name).mkdir(parents=True)
        (home / "bin/nvcc").write_text(f"#!/bin/sh\necho 'Cuda compilation tools, release {release}, V{release}.88'\n")
        (home / "bin/nvcc").chmod(0o755)
        (home / "include/cuda_runtime.h").touch()
        if nccl:
            (home / "include/nccl.h").touch()
        for name in libraries:
            shutil.copy(self.folder / "all" / name, home / "lib64")
        return home

    def bash(self, commands, code=0, **environment):
        settings = {"LIBTORCH_ROOT": str(self.folder / "libtorch"), "CUDA_HOME": "/nowhere", "NCCL_ROOT": "",
                    "NCCL_HOME": "", "LD_LIBRARY_PATH": "", **environment}  # fmt: skip
        ended = self.wait(self.start(["bash", "-c", PRELUDE + commands], environment=settings))
        self.assertEqual(ended.code, code, str(ended))
        return ended

    def resolve(self, **environment):
        """{"toolkit", "nccl", "wheel", "folder": values}, and what was printed."""
        ended = self.bash("resolve_cuda" + TELL, **environment)
        told = {key: [] for key in ("toolkit", "nccl", "wheel", "folder")}
        for key, value in re.findall(r"^(toolkit|nccl|wheel|folder) (.+)$", ended.stdout, re.MULTILINE):
            told[key].append(value)
        return told, ended.stdout

    def names(self, wheels):
        return [wheel.partition("==")[0] for wheel in wheels]

    def test_a_machine_without_anything(self):
        told, _ = self.resolve()
        self.assertEqual((told["toolkit"], told["nccl"], told["folder"]), ([], [], []))
        names = self.names(told["wheel"])
        self.assertEqual(len(names), len(set(names)), "each once")
        for name in "nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-nccl-cu13", "nvidia-cublas", "nvidia-cudnn-cu13":
            self.assertIn(name, names)

    def test_a_toolkit_without_nccl_and_cudnn(self):
        home = self.toolkit("cuda", "13.0", OF_TOOLKIT)
        told, printed = self.resolve(CUDA_HOME=str(home))
        self.assertEqual(told["toolkit"], [str(home)])
        self.assertIn("CUDA toolkit: 13.0", printed)
        self.assertEqual(
            self.names(told["wheel"]),
            ["nvidia-nccl-cu13", "nvidia-cudnn-cu13", "nvidia-cusparselt-cu13", "nvidia-nvshmem-cu13"],
        )  # fmt: skip
        self.assertEqual(told["folder"], [f"{home}/lib64"])

    def test_a_toolkit_and_modules_with_everything(self):
        home = self.toolkit("cuda", "13.1", OF_TOOLKIT)
        modules = self.toolkit("nccl", "0", ["libnccl.so.2"], nccl=True), self.toolkit("cudnn", "0", OTHERS[:3])
        (modules[0] / "lib64").rename(modules[0] / "lib")
        told, _ = self.resolve(CUDA_HOME=str(home), NCCL_ROOT=str(modules[0]), LD_LIBRARY_PATH=f":{modules[1]}/lib64")
        self.assertEqual(told["wheel"], [])
        self.assertEqual(told["nccl"], [str(modules[0])])
        self.assertEqual(set(told["folder"]), {f"{home}/lib64", f"{modules[0]}/lib", f"{modules[1]}/lib64"})

    def test_a_toolkit_of_another_major_is_not_used(self):
        home = self.toolkit("cuda", "12.6", OF_TOOLKIT + OTHERS, nccl=True)
        told, printed = self.resolve(CUDA_HOME=str(home))
        self.assertIn(f"CUDA 12.6 in {home} does not fit: LibTorch was built for CUDA 13.0", printed)
        self.assertEqual((told["toolkit"], told["nccl"], told["folder"]), ([], [], []))
        self.assertIn("nvidia-cuda-nvcc", self.names(told["wheel"]))

    def test_the_toolkit_of_the_compiler_on_the_path(self):
        home = self.toolkit("cuda-13", "13.0", OF_TOOLKIT + OTHERS, nccl=True)
        (self.folder / "links").mkdir()
        (self.folder / "links/nvcc").symlink_to(home / "bin/nvcc")
        told, _ = self.resolve(CUDA_HOME="", PATH=f"{self.folder}/links:{os.environ['PATH']}")
        self.assertEqual((told["toolkit"], told["wheel"]), ([str(home)], []))
        (home / "include/cuda_runtime.h").unlink()  # then it may be a script that calls another
        told, _ = self.resolve(CUDA_HOME="", PATH=f"{self.folder}/links:{os.environ['PATH']}")
        self.assertNotIn(str(home), told["toolkit"])

    def test_wheels_become_a_toolkit(self):
        ended = self.bash("provide_cuda" + TELL + 'readlink "$cuda_toolkit/lib64" "$cuda_toolkit/lib/libcudart.so"')
        self.assertRegex(ended.stdout, r"(?m)^unpacked nvidia-cuda-nvcc==13\.\S+ ")
        self.assertRegex(ended.stdout, r"(?m)^toolkit \S+/nvidia/cu13$")
        self.assertRegex(ended.stdout, r"(?m)^nccl \S+/nvidia/nccl$")
        self.assertEqual(ended.stdout.splitlines()[-2:], ["lib", "libcudart.so.13"])
        self.assertNotIn("unpacked", self.bash("provide_cuda").stdout, "once")

    def test_a_libtorch_for_cpus(self):
        (self.folder / "libtorch/lib/libc10_cuda.so").unlink()
        self.assertIn("was built without CUDA", self.bash("provide_cuda", ENVIRONMENT).stderr)

    def test_a_libtorch_of_another_major(self):
        self.libtorch("older", "12.6")
        environment = {"LIBTORCH_ROOT": str(self.folder / "older")}
        told = self.bash("provide_cuda", ENVIRONMENT, **environment).stderr
        for word in "built for CUDA 12.6", "the wheels are of CUDA 13.0", "load modules of CUDA 12":
            self.assertIn(word, told)
        home = self.toolkit("cuda", "12.4", OF_TOOLKIT + OTHERS, nccl=True)
        told, _ = self.resolve(**environment, CUDA_HOME=str(home))
        self.assertEqual((told["toolkit"], told["wheel"]), ([str(home)], []))

    def test_every_library_of_the_real_libtorch_has_a_wheel(self):
        linked = subprocess.run(["ldd", self.program], stdout=subprocess.PIPE, text=True, check=True).stdout
        libtorch = re.search(r"=> (\S+)/lib/libc10\.so", linked)[1]
        if not os.path.exists(f"{libtorch}/lib/libc10_cuda.so"):
            self.skipTest("built with a LibTorch for CPUs")
        lines = 'for library in $(libraries_of_libtorch); do echo "$library:" $(wheels_of "$library"); done'
        listed = self.bash(lines, LIBTORCH_ROOT=libtorch).stdout.splitlines()
        self.assertGreater(len(listed), 10)
        self.assertEqual([line for line in listed if "==" not in line], [])

    def test_a_program_that_does_not_find_its_libraries(self):
        self.link("all/libelsewhere.so.1")
        self.link("program", ["libelsewhere.so.1"], "int main() { return 0; }\n")
        told = self.bash("check_libraries ./program", ENVIRONMENT, LD_LIBRARY_PATH=f"{self.folder}/all").stderr
        self.assertIn("./program does not find all its libraries", told)
        self.assertIn("libelsewhere.so.1 => not found", told)
        self.bash(f"check_libraries {self.program}")


if __name__ == "__main__":
    harness.main()
