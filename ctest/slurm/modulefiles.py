"""The modulefiles, loaded by real Lmod and real Environment Modules."""

import glob
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = ROOT / "modules" / "modulefiles"
SKIPPED = 77
LMOD = pathlib.Path("/usr/share/lmod/lmod/init/bash")
SHOW = "command -v stratagem; echo home=$STRATAGEM_HOME; echo loaded=$LOADEDMODULES; "


def environment_modules():
    """The script that `module` of Environment Modules runs. Debian does not install it together with Lmod, so it may
    be unpacked in the folder of downloads."""
    cache = os.environ.get("XDG_CACHE_HOME", str(pathlib.Path.home() / ".cache"))
    places = [os.environ.get("STRATAGEM_DEPS", cache + "/stratagem") + "/environment-modules", ""]
    found = [path for place in places for path in glob.glob(place + "/usr/lib/*/modulecmd.tcl")]
    return found[0] if found and shutil.which("tclsh") else None


class Modulefiles(unittest.TestCase):
    """What both must do; `init` makes `module` known to a shell."""

    init = None

    def shell(self, commands, code=0):
        ended = subprocess.run(
            ["bash", "-c", f"{self.init}; module use {FILES}; {commands}"],
            env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "USER": "anna"},
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        self.assertEqual(ended.returncode, code, ended.stdout + ended.stderr)
        return ended.stdout + ended.stderr

    def check_all(self):
        told = self.shell("module load stratagem; " + SHOW)
        self.assertIn(f"home={ROOT}\n", told)
        self.assertIn("stratagem/0.1.0", told)
        if (ROOT / "build/stratagem").exists():  # the other may be built meanwhile
            self.assertRegex(told, rf"(?m)^{ROOT}/build(-cuda-release)?/stratagem$")
        told = self.shell("module load stratagem; module unload stratagem; " + SHOW + "true")
        self.assertIn("home=\n", told)
        self.assertIn("data-parallel strategies", self.shell("module help stratagem"))
        told = self.shell("module whatis stratagem")
        for word in "Name: stratagem", "Version: 0.1.0", "Keywords", "Description":
            self.assertIn(word, told)
        told = self.shell(
            "export STRATAGEM_MODULES=stratagem/0.1.0; module load stratagem-site/generic; " + SHOW
        )
        self.assertIn(f"home={ROOT}\n", told)
        self.shell("module load no-such-module", code=1)

    def check_installed(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        prefix = pathlib.Path(folder.name)
        files = prefix / "share/stratagem/modules/modulefiles"
        shutil.copytree(FILES, files)
        (prefix / "bin").mkdir()
        (prefix / "bin/stratagem").write_text("#!/bin/sh\n")
        (prefix / "bin/stratagem").chmod(0o755)
        told = self.shell(f"module use {files}; module load stratagem; {SHOW}")
        self.assertIn(f"{prefix}/bin/stratagem\n", told)
        self.assertIn(f"home={prefix}/share/stratagem\n", told)


class Lmod(Modulefiles):
    init = f"source {LMOD}"

    def setUp(self):
        if not LMOD.exists():
            self.skipTest("needs Lmod")

    def test_lmod(self):
        self.check_all()
        self.check_installed()

    def test_hopper_names_the_module_that_is_missing(self):
        told = self.shell("module load stratagem-site/hopper", code=1)
        self.assertIn("hosts/hopper", told)


class EnvironmentModules(Modulefiles):
    def setUp(self):
        script = environment_modules()
        if script is None:
            self.skipTest("needs Environment Modules")
        # Its init file would look for the script where Debian installs it.
        self.init = f'module() {{ eval "$(tclsh {script} bash "$@")"; }}'

    def test_environment_modules(self):
        self.check_all()
        self.check_installed()

    def test_one_version_at_a_time(self):
        told = self.shell("module load stratagem/0.1.0; module show stratagem")
        self.assertIn("conflict", told)


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=2).result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(SKIPPED if result.skipped else 0)
