#!/usr/bin/env python3
"""`srun assay train` on four nodes of a real Slurm: the bits of one rank, and one line when a rank dies.

    tests/slurm/train_test.py PROGRAM      # the built `assay`

Exits with 77 where no cluster can run (see tests/slurm/cluster).
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = ""
PATIENCE = 240  # seconds, for what takes five on an idle machine

JOB = ["train", "demo", "--device", "cpu", "--quiet"]
for setting in ("model.dim=32", "model.layers=3", "model.heads=4", "model.kv_heads=2", "model.ffn=64",
                "model.context=32", "batch.sequence=32", "batch.micro_batch=2", "train.warmup_steps=2"):
    JOB += ["--set", setting]


def wait_for_line(file, text):
    """Shell: until a line of the file has the text; after a minute it ends the script instead."""
    return f"""for i in $(seq 600); do grep -q '{text}' {file} 2>/dev/null && break; sleep 0.1; done
          grep -q '{text}' {file} || {{ echo "no '{text}' in {file}" >&2; kill $job; exit 1; }}"""


class TrainTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-slurm-train-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def run_here(self, *arguments):
        return subprocess.run([*arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, cwd=self.folder, timeout=PATIENCE)

    def srun(self, script):
        done = self.run_here(str(HERE / "cluster"), "--nodes", "4", "--", "bash", "-c", script)
        return done

    def contents(self, out):
        step = self.folder / out / "checkpoints/step-4"
        done = self.run_here(PROGRAM, "checkpoint", "diff", str(self.folder / "one"), str(step))
        return done.returncode, done.stdout + done.stderr

    def test_four_nodes_train_what_one_rank_trains(self):
        one = self.run_here(PROGRAM, *JOB, "--set", "train.steps=4", "--set", "batch.accumulate=4", "--out", "one")
        self.assertEqual(one.returncode, 0, one.stderr)
        for name, layout in (("shards", ["layout.fsdp=4"]),
                             ("pipeline", ["layout.fsdp=2", "layout.pp=2", "batch.accumulate=2"])):
            command = [PROGRAM, *JOB, "--set", "train.steps=4", "--out", name]
            for setting in layout:
                command += ["--set", setting]
            done = self.srun("srun -N4 -n4 " + " ".join(command))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.contents(name)[0], 0, self.contents(name)[1])
            self.assertFalse((self.folder / name / ".assay-secret").exists())
            self.assertTrue((self.folder / name / "ranks/rank-3.log").exists())
            self.expect_one_run(name)

    def expect_one_run(self, name):
        """What all four recorded is one run: its files, its processes on all nodes, nothing of others."""
        listed = json.loads(self.run_here(PROGRAM, "log", "--json").stdout)["runs"]
        runs = [run for run in listed if name in run["command"]]
        self.assertEqual(len(runs), 1, runs)
        run = json.loads(self.run_here(PROGRAM, "show", str(runs[0]["id"]), "--json").stdout)
        self.assertEqual((run["run"]["status"], run["run"]["complete"], run["missed"]), ("done", True, []))
        outputs = {os.path.relpath(output["path"], self.folder / name): output for output in run["outputs"]}
        for rank in range(4):
            if rank > 0:
                self.assertIn(f"ranks/rank-{rank}.log", outputs)
            for part in ("weights", "optimizer"):
                file = f"checkpoints/step-4/{part}-rank-{rank:05}-of-00004.safetensors"
                self.assertIn(file, outputs)
                self.assertEqual(outputs[file]["status"], "created")
        self.assertFalse([path for path in outputs if ".tmp" in path])
        inside = [entry["path"] for entry in run["inputs"] if entry["path"].startswith(str(self.folder))]
        self.assertEqual(inside, [], "what ranks made for each other is no input")
        self.assertEqual([process.get("host") for process in run["process_tree"]], [None, "n2", "n3", "n4"])
        self.assertEqual(os.listdir(self.folder / ".assay/spool"), [])
        self.assertEqual(sorted(os.listdir(self.folder / name / "ranks")), [f"rank-{i}.log" for i in (1, 2, 3)])

    def test_a_part_that_does_not_come_is_named(self):
        command = " ".join([PROGRAM, *JOB, "--set", "train.steps=100000", "--set", "layout.fsdp=4", "--out", "lost"])
        # Everything of rank 2, its collector too.
        script = f"""srun -N4 -n4 --kill-on-bad-exit=0 {command} & job=$!
          {wait_for_line('lost/ranks/rank-2.log', 'step 2')}
          of_rank_2=$(for p in $(pgrep -f assay); do grep -lz SLURM_PROCID=2 /proc/$p/environ; done | cut -d/ -f3 | sort -rn)
          # Children first: what a parent's end leaves stopped and orphaned is continued by the kernel.
          kill -STOP $of_rank_2; kill -KILL $of_rank_2
          wait $job"""
        done = self.srun(script)
        self.assertNotEqual(done.returncode, 0)
        runs = json.loads(self.run_here(PROGRAM, "log", "--json").stdout)["runs"]
        self.assertEqual(len(runs), 1, runs)
        run = json.loads(self.run_here(PROGRAM, "show", "last", "--json").stdout)
        self.assertEqual((run["run"]["status"], run["run"]["complete"]), ("failed", False))
        missed = [entry["text"] for entry in run["missed"]]
        self.assertTrue([text for text in missed if text.startswith("what rank 2 on n3 did is not recorded")], missed)
        self.assertIn(str(self.folder / "lost/ranks/rank-3.log"), [output["path"] for output in run["outputs"]])

    def test_a_rank_that_dies_ends_all_with_one_line(self):
        command = " ".join([PROGRAM, *JOB, "--set", "train.steps=100000", "--set", "layout.fsdp=4", "--out", "killed"])
        # The trainer of rank 2, once it has begun.
        script = f"""srun -N4 -n4 --kill-on-bad-exit=0 {command} & job=$!
          {wait_for_line('killed/ranks/rank-2.log', 'step 2')}
          for p in $(pgrep -f assay-train); do
            grep -qz SLURM_PROCID=2 /proc/$p/environ && kill -9 $p
          done
          wait $job"""
        done = self.srun(script)
        self.assertNotEqual(done.returncode, 0)
        lines = [line for line in done.stderr.splitlines() if line.startswith("assay: ") and "rank 2" in line]
        self.assertTrue(lines, done.stderr)


if __name__ == "__main__":
    probe = subprocess.run([str(HERE / "cluster"), "--nodes", "1", "--", "true"], timeout=PATIENCE)
    if probe.returncode == 77:
        sys.exit(77)
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
