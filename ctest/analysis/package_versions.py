"""Packages that are too old are named before they are imported."""

import sys
import unittest

import support  # noqa: F401 (finds the package)
from stratagem_report import packages


class Versions(unittest.TestCase):
    def test_old_ones_are_named(self):
        for name, version, expected in [
            ("matplotlib", "3.6.3", ["matplotlib 3.6.3 (needs 3.7)"]),
            ("pandas", "1.4.4", ["pandas 1.4.4 (needs 1.5)"]),
            ("scipy", "1.8", ["scipy 1.8 (needs 1.9)"]),
            ("jinja2", "2.11.3", ["jinja2 2.11.3 (needs 3.0)"]),
            ("matplotlib", "3.10.8", []),
            ("numpy", "2.0.0rc1", []),
        ]:
            with self.subTest(name=name, version=version):
                installed = {name: version}
                self.assertEqual(packages.too_old(lambda asked, there=installed: there.get(asked, "99.0")), expected)

    def test_the_tests_python_is_new_enough(self):
        self.assertEqual(packages.too_old(), [])


if __name__ == "__main__":
    sys.exit(not unittest.main(argv=sys.argv[:1], exit=False, verbosity=2).result.wasSuccessful())
