"""slurm/README.md from its first command to its last, on a real Slurm, in the order in which a reader types them. Each
job that a command submits must succeed before the next command."""

import pathlib
import re
import shutil

import script_test

GUIDE = script_test.ROOT / "slurm/README.md"
LMOD = pathlib.Path("/usr/share/lmod/lmod/init/bash")
ELSEWHERE = {
    "ssh ": "the test is there already",
    "git clone": "the test copies the checkout",
    "modules/bootstrap.sh build --gpu": "loads 3 GB; ctest/cli/gpu_packages.py",
    "modules/fetch-data.sh": "loads from the network; ctest/cli/safety.py",
    "python3 analysis/report.py": "ctest/cli/examples.py, with the packages",
}
OF_A_SHELL = ("module ", "study=")  # what later commands need
# The guide's study and preflight take days of GPUs. These have the same parts, and as many cells as its commands name.
STUDY = """schema: 1
name: study
base:
  run: {threads: 1, max_steps: 2, evaluate_every: 0}
  data: {dataset: synthetic-digits, global_batch: 16, subset: 64}
variants: {ddp: {strategy: {name: ddp}}, fsdp: {strategy: {name: fsdp}}, ps-sync: {strategy: {name: ps}}}
parts:
  dp: {matrix: {model.name: [mlp], variant: [ddp, fsdp], workers: [1, 2], run.seed: [1, 2, 3]}}
  ps: {matrix: {model.name: [mlp], variant: [ps-sync], workers: [1, 2], run.seed: [1, 2, 3]}}
"""
RUN = """schema: 1
run: {name: my, threads: 1, max_steps: 2, evaluate_every: 0}
data: {dataset: synthetic-digits, global_batch: 16, subset: 64}
model: {name: mlp}
strategy: {name: ddp}
"""


def commands():
    """Of the numbered sections, without comments."""
    text = GUIDE.read_text(encoding="utf-8").partition("\n## A study directory")[0]
    for block in re.findall(r"^```\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            if command := re.sub(r"(^|\s+)#.*", "", line).strip():
                yield command


class Guide(script_test.ScriptTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        shutil.copytree(script_test.ROOT / "modules", cls.home / "modules")
        (cls.home / "build").mkdir()
        (cls.home / "build/stratagem").symlink_to(cls.program)
        (cls.home / "my.yaml").write_text(RUN)
        (cls.home / "inputs/study/study.yaml").write_text(STUDY)
        cls.shorten_preflight(variant="[ddp, ps-sync]")
        cls.extend_site("hopper", f"site_scratch={cls.folder}/scratch", script_test.NO_GPU)
        cls.box.environment.update(STRATAGEM_DEVICE="auto", SCRATCH=f"{cls.folder}/scratch")
        del cls.box.environment["STRATAGEM"]
        cls.add_modules()

    @classmethod
    def add_modules(cls):
        """The site's modules that stratagem-site/hopper loads, as empty ones."""
        text = (cls.home / "modules/modulefiles/stratagem-site/hopper.lua").read_text()
        for name in re.findall(r'"([^"]+)"', text[text.index("ipairs") :].partition("})")[0]):
            path = cls.folder / "site-modules" / f"{name}.lua"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        cls.box.environment["MODULEPATH"] = f"{cls.folder}/site-modules"

    def test_from_first_to_last(self):
        unused, shell = set(ELSEWHERE), [f"source {LMOD}"]
        for command in commands():
            elsewhere = {begin for begin in ELSEWHERE if command.startswith(begin)}
            unused -= elsewhere
            if elsewhere:
                continue
            ended = self.box.run("bash", "-c", "\n".join([*shell, command]), cwd=self.home, timeout=120)
            if command.startswith(OF_A_SHELL):
                shell.append(command)
            for job in re.findall(r"\bjob (\d+)$", ended.stdout, re.MULTILINE):
                for end in self.box.wait(job, 400):
                    self.assertEqual((end["JobState"], end["ExitCode"]), ("COMPLETED", "0:0"), self.log_of(job))
            self.check(command, ended.stdout)
        self.assertEqual(unused, set(), "the guide has these no longer")

    def check(self, command, told):
        if command == "stratagem info":
            self.assertIn("cpu", told)
        if command.startswith("stratagem status"):
            self.assertIn("18 cells: 18 complete", told)
        if "--resume" in command:
            self.assertIn("nothing to submit", told)
        if command.startswith("stratagem collect"):
            self.assertNotIn("missing", told)


if __name__ == "__main__":
    script_test.main("" if LMOD.exists() else f"no {LMOD}")
