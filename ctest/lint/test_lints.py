#!/usr/bin/env python3
"""Each lint finds what it should find, and nothing in a correct tree."""

import tempfile
import unittest
from pathlib import Path

import circles
import headers
import layers
import one_truth
import simd
import style


class LintTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def check(self, lint, path, text, finding):
        """`lint` reports exactly one problem in `path`, which contains `finding`; or none, if that is None."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        problems = lint.find_problems(self.root)
        file.unlink()
        if finding is None:
            self.assertEqual(problems, [])
        else:
            self.assertEqual(len(problems), 1, problems)
            self.assertTrue(problems[0].startswith(path), problems)
            self.assertIn(finding, problems[0])

    def test_layers_point_down(self):
        for path, include, finding in [
            ("lib/trace/x.cpp", '"h5/reader.hpp"', None),
            ("lib/trace/x.cpp", '"base/text.hpp"', None),
            ("lib/model/x.hpp", '"params/flat_buffer.hpp"', None),
            ("app/x.cpp", '"config/load.hpp"', None),
            ("lib/base/x.cpp", '"mpi/comm.hpp"', "base must not include mpi"),
            ("lib/mpi/x.cpp", '"gpu/device.hpp"', "mpi must not include gpu"),
            ("lib/params/x.hpp", '"model/block.hpp"', "params must not include model"),
            ("lib/model/x.hpp", '"comm/communicator.hpp"', "model must not include comm"),
            ("lib/train/x.cpp", '"config/load.hpp"', "train must not include config"),
            ("lib/train/x.cpp", '"trainer.hpp"', "by its path"),
            ("lib/unheard/x.cpp", "<vector>", "not a layer"),
        ]:
            with self.subTest(path=path, include=include):
                self.check(layers, path, f"#include {include}\n", finding)

    def test_a_strategy_is_named_by_the_registry_alone(self):
        for name, type_name in ("ddp", "DdpConfig"), ("fedavg", "FedAvgConfig"):
            config = self.root / f"lib/strategy/{name}/{name}_config.hpp"
            config.parent.mkdir(parents=True)
            config.write_text(f"struct {type_name} {{}};\n")
        for path, line, finding in [
            ("lib/strategy/ddp/x.cpp", "DdpPlan const plan;", None),
            ("lib/strategy/registry.cpp", '#include "strategy/ddp/ddp_plan.hpp"', None),
            ("lib/train/x.cpp", "auto one = config;  // a DdpConfig", None),
            ("app/x.cpp", "std::get_if<DdpConfig>(&strategy);", "DdpConfig belongs to lib/strategy/ddp"),
            ("app/x.cpp", "std::get_if<FedAvgConfig>(&strategy);", "FedAvgConfig belongs to lib/strategy/fedavg"),
            ("lib/train/x.cpp", '#include "strategy/ddp/replicated.hpp"', "belongs to lib/strategy/ddp"),
            ("lib/strategy/fsdp/x.cpp", "auto const* plan = ddp_of(other);", "belongs to lib/strategy/ddp"),
        ]:
            with self.subTest(path=path, line=line):
                self.check(layers, path, line + "\n", finding)

    def test_modules_do_not_need_each_other(self):
        """A factory's source may include its products, whose headers lead back to its own."""
        for files, finding in [
            ({"a.cpp": "b.hpp", "b.cpp": "c.hpp", "c.cpp": "d.hpp"}, None),
            ({"a.cpp": "b.hpp", "b.hpp": "a.hpp"}, None),
            ({"a.cpp": "c.hpp", "c.hpp": "b.hpp", "b.hpp": "a.hpp"}, None),
            ({"a.cpp": "b.hpp", "b.cpp": "a.hpp"}, "trace/a -> trace/b -> trace/a"),
            ({"a.hpp": "b.hpp", "b.cpp": "c.hpp", "c.cpp": "a.hpp"}, "trace/a -> trace/b -> trace/c -> trace/a"),
        ]:
            with self.subTest(files=files), tempfile.TemporaryDirectory() as folder:
                trace = Path(folder) / "lib/trace"
                trace.mkdir(parents=True)
                for file, include in files.items():
                    (trace / file).write_text(f'#include "trace/{include}"\n')
                problems = circles.find_problems(Path(folder))
                self.assertEqual(len(problems), 0 if finding is None else 1, problems)
                self.assertIn(finding or "", "".join(problems))

    def test_a_folder_can_be_overlooked(self):
        folder = self.root / "lib/trace"
        (folder / "sub").mkdir(parents=True)
        for file in ["sub/f.cpp", *(f"f{number}.cpp" for number in range(30))]:
            (folder / file).touch()
        self.assertEqual(layers.find_problems(self.root), [])
        (folder / "f30.cpp").touch()
        self.assertIn("lib/trace: 31 files", "".join(layers.find_problems(self.root)))

    def test_clones_use_their_registers(self):
        def function(clone, *instructions):
            return "\n".join([f"{64:016x} <_Z3addPf.{clone}>:", *(f"  40:\t\t{line}" for line in instructions), ""])

        wide, scalar = "vaddps (%rsi,%rax,1),%ymm0,%ymm1", "vaddss (%rsi),%xmm0,%xmm0"
        for shown, finding in [
            (function("avx2", wide) + "\n" + function("avx512f", "vmulpd %zmm0,%zmm1,%zmm2"), None),
            (function("avx2", scalar) + "\n" + function("default", wide), "for avx2 computes one"),
            (function("avx512f", wide), "for avx512f computes one"),
            (function("default", wide), "no function has clones"),
        ]:
            with self.subTest(shown=shown):
                problems = list(simd.find_problems(shown))
                self.assertEqual(len(problems), 0 if finding is None else 1, problems)
                self.assertIn(finding or "", "".join(problems))

    def test_vendor_headers_stay_home(self):
        for header, home, stranger in [
            ("mpi.h", "lib/mpi/x.cpp", "lib/comm/x.cpp"),
            ("hdf5.h", "lib/h5/x.cpp", "lib/trace/x.cpp"),
            ("H5Fpublic.h", "lib/h5/x.cpp", "app/x.cpp"),
            ("yaml-cpp/yaml.h", "lib/config/x.cpp", "lib/train/x.cpp"),
            ("boost/program_options.hpp", "app/x.cpp", "lib/config/x.cpp"),
            ("cuda_runtime.h", "lib/gpu/cuda/x.cpp", "lib/gpu/x.cpp"),
            ("c10/cuda/CUDAStream.h", "lib/comm/nccl/x.cpp", "lib/comm/mpi/x.cpp"),
            ("nccl.h", "lib/comm/nccl/x.cpp", "lib/gpu/cuda/x.cpp"),
        ]:
            with self.subTest(header=header):
                self.check(layers, home, f"#include <{header}>\n", None)
                self.check(layers, stranger, f"#include <{header}>\n", "belongs to")
        self.check(layers, "lib/model/x.cpp", "#include <torch/torch.h>\n", "belongs to nobody")

    def test_links_follow_the_layers(self):
        path = "lib/comm/CMakeLists.txt"
        self.check(layers, path, "add_layer(comm SOURCES a.cpp PUBLIC stratagem::mpi PRIVATE NCCL::NCCL)\n", None)
        self.check(layers, path, "add_layer(comm SOURCES a.cpp PUBLIC NCCL::NCCL)\n", "linked PRIVATE")
        self.check(layers, path, "add_layer(comm SOURCES a.cpp PUBLIC stratagem::train)\n", "must not link train")

    def test_headers_include_what_they_use(self):
        path = "lib/base/x.hpp"
        sound = "#pragma once\n#include <string>\nstd::string f(std::string_view text);\n"
        self.check(headers, path, sound, None)
        self.check(headers, path, sound.replace("#pragma once\n", ""), "#pragma once")
        self.check(headers, path, sound + "std::vector<int> g();\n", "#include <vector>")
        self.check(headers, path, sound + "// std::vector in a comment\n", None)

    def test_the_report_computes_no_number_that_collect_gives(self):
        for path, text in [
            ("lib/trace/schema.cpp", 'TableSpec{"/steps", {}}; TableSpec{"/ps", {}};\n'),
            ("lib/study/measures.cpp", '{"epoch_s", "s", "x"}; count("updates", "y"); {"train_time_s", "s", "z"};\n'),
        ]:
            (self.root / path).parent.mkdir(parents=True)
            (self.root / path).write_text(text)
        figure, table = (f"analysis/stratagem_report/{name}.py" for name in ("figures_memory", "tables_servers"))
        drawn, made = (f"def {name}(run, rank, cells):\n    return " for name in ("f5_memory_over_time", "t3_servers"))
        for path, text, finding in [
            (table, made + 'family.spread("epoch_s", variant, workers)', None),
            (table, made + 'ratio(family.spread("epoch_s", a, 1), family.spread("epoch_s", b, 1)).median', None),
            (table, made + "run.trace", "t3_servers touches traces"),
            (table, made + 'rank["ps"]', "t3_servers touches traces"),
            (table, made + 'trace.read_run("runs/x")', "t3_servers touches traces"),
            (table, "import h5py", "the file touches traces"),
            (table, made + 'run.row["updates"] / run.row["train_time_s"]', "two measures of a run"),
            (table, made + 'cells["epoch_s"].median()', "over cells"),
            (table, made + 'spread(cells["epoch_s"])', "over cells"),
            (figure, drawn + 'rank["steps"]["t_begin_ns"].min()', None),
            (figure, drawn + 'rank["steps"]["dur_step_ns"].mean()', "f5_memory_over_time takes statistics"),
            (figure, drawn + 'sum(rank["ps"]["bytes"])', "f5_memory_over_time takes statistics"),
            (figure, drawn.replace("f5", "f6") + 'rank["steps"]', "touches traces"),
            ("analysis/stratagem_report/trace.py", drawn + 'rank["steps"]["dur_step_ns"].mean()', None),
        ]:
            with self.subTest(text=text):
                self.check(one_truth, path, text + "\n", finding)

    def test_style(self):
        path = "lib/base/x.hpp"
        for text, finding in [
            ("int x;\n", None),
            ("", "empty file"),
            ("int x;", "no newline"),
            ("int x;\n\n", "empty line"),
            ("\tint x;\n", "tab"),
            ("int x; \n", "space at the end"),
            ("//" + "x" * 119 + "\n", "121 columns"),
            ("int x;\n" * 301, "301 lines"),
            ("// " + "TO" + "DO later\n", "forbidden"),
            ('auto p = "/' + 'home/me/data";\n', "forbidden"),
            ('auto p = "${HOME}/' + 'work/data";\n', None),
        ]:
            with self.subTest(text=text[:40]):
                self.check(style, path, text, finding)

    def test_suites_have_the_name_that_ctest_runs(self):
        for suite, finding in [("BucketPlan", None), ("Buckets", "suite Buckets never runs: name it BucketPlan")]:
            with self.subTest(suite=suite):
                self.check(style, "ctest/plan/bucket_plan.cpp", f"TEST({suite}, HasBuckets) {{}}\n", finding)


if __name__ == "__main__":
    unittest.main()
