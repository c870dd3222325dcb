"""Runs across two nodes of a real Slurm, over TCP: the same bits as on one node, with mpirun and with srun; the
effect of a slow link; and nodes that lose power, their cable, or a rank."""

import csv
import json
import os
import re
import signal
import statistics
import time

import script_test
import slurm_nodes

PEER_LOST, STALL = 80, 81
NOT_HEARD = r"the node of rank [01] has not been heard of for"


class Nodes(script_test.ScriptTest):
    @classmethod
    def make_box(cls, folder):
        return slurm_nodes.SlurmNodes(folder)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.add_site("mpirun", gpus_per_node=1)
        cls.add_site("srun", gpus_per_node=1, site_launcher="srun --mpi=pmix -n {ranks}")
        cls.add_site("pairs", gpus_per_node=2)

    def hosts(self, out):
        return [rank["host"] for rank in json.loads((out / "manifest.json").read_text())["ranks"]]

    def begin(self, site, strategy="ddp", **how):
        """A run after its first checkpoint: its folder and job."""
        out = self.new_out(f"{site}-{strategy}")
        job = self.submit_run(out, site, strategy, **how)
        self.await_checkpoint(job, out)
        return out, job

    def test_same_bits_as_on_one_node(self):
        for site in "mpirun", "srun":
            for strategy in "ddp", "ps":
                with self.subTest(site, strategy=strategy):
                    out = self.new_out(f"{site}-{strategy}")
                    job = self.submit_run(out, site, strategy, steps=100)
                    [end] = self.box.wait(job, 90)
                    self.check_state(end, "COMPLETED")
                    self.assertEqual(set(self.hosts(out)), {"n1", "n2"})
                    self.check_finished(out, attempt=0, steps=100)

    # ---- a slow link -----------------------------------------------------------------------------

    def exposed(self, out):
        """On rank 0: median exposed communication per step [s], and bytes sent."""
        self.box.run(self.program, "collect", "-q", out, "-o", out / "collected.h5")
        column = "/rank-0000/steps/dur_comm_exposed_ns"
        dumped = self.box.run("h5dump", "-y", "-w", "1", "-d", column, out / "collected.h5").stdout
        data = re.search(r"^   DATA \{\n(.*?)^   \}", dumped, re.MULTILINE | re.DOTALL)[1]
        steps = [int(number) for number in re.findall(r"\d+", data)]
        [epoch] = csv.DictReader((out / "metrics.csv").read_text().splitlines())
        return statistics.median(steps) * 1e-9, int(epoch["comm_bytes"]) / len(steps)

    def test_slow_link(self):
        """Exposed communication grows in proportion to the bytes."""
        without = None
        for mbit in None, 200, 50:
            for node in self.box.nodes:
                if mbit:
                    self.box.rate(node, f"{mbit}mbit")
                    self.addCleanup(self.box.rate, node, None)
            out = self.new_out(f"rate-{mbit}")
            [end] = self.box.wait(self.submit_run(out, "mpirun", steps=12), 90)
            self.check_state(end, "COMPLETED")
            exposed, sent = self.exposed(out)
            if not mbit:
                without = exposed
                print(f"not limited: {sent:.0f} B a step, {exposed * 1e3:.1f} ms exposed", flush=True)
                continue
            by_bytes = sent * 8 / (mbit * 1e6)
            print(f"{mbit} Mbit/s: {exposed * 1e3:.1f} ms exposed, {by_bytes * 1e3:.1f} by the bytes", flush=True)
            self.assertGreater(exposed, 0.6 * by_bytes)
            self.assertLess(exposed - without, 4 * by_bytes)

    # ---- faults ----------------------------------------------------------------------------------

    def test_power_off(self):
        """Of the node without the job's script. mpirun exits with code 0, which is not trusted."""
        out, job = self.begin("mpirun")
        self.box.power_off("n2")
        self.await_pending(job)
        self.check_failed(out, PEER_LOST, NOT_HEARD)
        self.assertIn("code 80: queued again", self.log_of(job))
        self.box.boot("n2")
        self.finish(job, out)

    def test_power_off_of_the_first_node(self):
        """With script, launcher and rank 0: only Slurm can report it."""
        out, job = self.begin("srun", "ps")
        self.box.power_off("n1")
        self.await_pending(job)
        self.box.boot("n1")
        self.finish(job, out)

    def test_cable(self):
        out, job = self.begin("mpirun")
        self.box.cut("n2")
        begin = time.monotonic()
        self.await_pending(job)
        print(f"queued again {time.monotonic() - begin:.1f} s after the cable was pulled", flush=True)
        self.check_failed(out, PEER_LOST, NOT_HEARD)
        self.box.mend("n2")
        self.finish(job, out)

    def test_frozen_rank_on_the_other_node(self):
        out, job = self.begin("pairs", workers=4, steps=150)
        self.assertEqual(self.hosts(out), ["n1", "n1", "n2", "n2"])
        os.kill(self.box.ranks()[3], signal.SIGSTOP)
        begin = time.monotonic()
        [end] = self.box.wait(job, 60)
        print(f"ended {time.monotonic() - begin:.1f} s after the rank was stopped", flush=True)
        self.check_state(end, "FAILED", f"{STALL}:0")
        self.check_failed(out, STALL, r"rank 3 \(process \d+\) was stopped by a signal, at step \d+")
        again = self.submit_run(out, "pairs", workers=4, steps=150)
        [end] = self.box.wait(again, 90)
        self.check_state(end, "COMPLETED")
        self.check_finished(out, attempt=1, workers=4, steps=150)


if __name__ == "__main__":
    script_test.main(slurm_nodes.why_not())
