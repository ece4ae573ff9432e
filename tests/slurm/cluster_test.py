#!/usr/bin/env python3
"""Tests tests/slurm/cluster: what tasks, signals and exit codes do there, and that nothing is left.

Every process of a cluster inherits a variable of this test's own, so that those left can be found, and
makes its files in a folder of this test's own. Exits with 77 where no cluster can run.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
MARK = f"ASSAY_SLURM_TEST=cluster-{os.getpid()}"
PATIENCE = 120  # seconds, for what takes one or two on an idle machine

# A task that says that it runs, and on SIGTERM how it ended: files in $MEET, named after rank or job.
TASK = """trap 'touch "$MEET/terminated$SLURM_PROCID"; exit 0' TERM
touch "$MEET/ready$SLURM_PROCID"; while :; do sleep 0.05; done"""


def marked():
    """The processes of this test's clusters."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if MARK.encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:  # it ended, or is another user's
            pass
    return found


class ClusterTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-slurm-test-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.meet, self.temporary = self.folder / "meet", self.folder / "tmp"
        for folder in (self.meet, self.temporary):
            folder.mkdir()
        self.environment = dict(os.environ, TMPDIR=str(self.temporary), MEET=str(self.meet), TASK=TASK)
        self.environment.update([MARK.split("=")])

    def start(self, *arguments, program=(str(HERE / "cluster"),), **more):
        cluster = subprocess.Popen([*program, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, cwd=self.meet, env=self.environment, **more)
        self.addCleanup(cluster.wait)
        self.addCleanup(cluster.kill)  # one that a failed test leaves; it then removes everything itself
        return cluster

    def finish(self, cluster):
        out, err = cluster.communicate(timeout=PATIENCE)
        self.assertEqual(marked(), [], "left processes")
        self.assertEqual(os.listdir(self.temporary), [], "left files")
        return cluster.returncode, out, err

    def run_cluster(self, *arguments, **more):
        return self.finish(self.start(*arguments, **more))

    def wait_for(self, condition, what):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.02)

    def wait_for_files(self, *names):
        self.wait_for(lambda: all((self.meet / name).exists() for name in names), f"not all of {names} came")

    def expect_places(self, out):
        """Two tasks on each of four nodes; out has a line of each, and then the nodes' addresses."""
        expected = {f"rank {2 * node + local} of 8 on {node} n{node + 1} n{node + 1} as {local}, n[1-4]"
                    for node in range(4) for local in range(2)}
        lines = out.splitlines()
        self.assertEqual(set(lines[:8]), expected)
        self.assertEqual([line.split() for line in lines[8:]], [[f"10.0.0.{i}", f"n{i}"] for i in range(1, 5)])

    PLACES = """srun -N4 -n8 sh -c 'echo "rank $SLURM_PROCID of $SLURM_NTASKS on $SLURM_NODEID $SLURMD_NODENAME \
$(hostname) as $SLURM_LOCALID, $SLURM_STEP_NODELIST"' &&
    getent hosts $(scontrol show hostnames 'n[1-4]')"""

    def test_tasks_know_their_places(self):
        code, out, err = self.run_cluster("--", "sh", "-c", self.PLACES)
        self.assertEqual((code, err), (0, ""))
        self.expect_places(out)

    def test_an_ordinary_user_can_run_it(self):
        if os.getuid() != 0:
            self.skipTest("the other tests are run by one")
        program = self.folder / "cluster"  # the checkout and this python may be where only root can read
        shutil.copy(HERE / "cluster", program)
        for path in (self.folder, self.meet, self.temporary):
            path.chmod(0o777)
        code, out, err = self.run_cluster("--", "sh", "-c", self.PLACES, program=("/usr/bin/python3", str(program)),
                                          user="nobody", group="nogroup", extra_groups=[])
        if code == 77:
            self.skipTest(err.strip())
        self.assertEqual((code, err), (0, ""))
        self.expect_places(out)

    def test_a_failing_tasks_exit_code_arrives(self):
        task = "exit $((SLURM_PROCID == 2 ? 42 : 0))"
        code, _, err = self.run_cluster("--", "srun", "-N4", "-n4", "sh", "-c", task)
        self.assertEqual(code, 42)
        self.assertIn("n3: task 2: Exited with exit code 42", err)

    def test_scancel_terminates_the_tasks(self):
        code, _, _ = self.run_cluster("--", "sh", "-c", """
            srun -N4 -n4 sh -c "$TASK" &
            for rank in 0 1 2 3; do until [ -e ready$rank ]; do sleep 0.05; done; done
            scancel $(squeue -h -o %i) && wait; while squeue -h | grep -q .; do sleep 0.05; done""")
        self.assertEqual(code, 0)
        self.assertEqual(sorted(self.meet.glob("terminated*")), [self.meet / f"terminated{i}" for i in range(4)])

    def test_clusters_can_run_at_the_same_time(self):
        command = 'srun touch "ready$0"; until [ -e go ]; do sleep 0.05; done; srun -Q -N"$0" hostname | sort'
        clusters = [self.start("--nodes", str(i), "--", "sh", "-c", command, str(i)) for i in (1, 2)]
        self.wait_for_files("ready1", "ready2")
        # Their daemons are found, so that finding none means something.
        self.assertGreaterEqual(sum("slurmd" in name for name in marked()), 3)
        (self.meet / "go").touch()
        for i, cluster in enumerate(clusters, 1):
            out, err = cluster.communicate(timeout=PATIENCE)
            self.assertEqual((cluster.returncode, out, err), (0, "n1\nn2\n"[:3 * i], ""))
        self.assertEqual((marked(), os.listdir(self.temporary)), ([], []))

    def test_what_the_command_leaves_is_ended(self):
        code, out, _ = self.run_cluster("--", "sh", "-c", """
            setsid sh -c 'trap "" TERM HUP; while :; do sleep 1; done' </dev/null >/dev/null 2>&1 &
            sbatch --parsable -o /dev/null --wrap 'srun sh -c "$TASK"'
            until [ -e ready0 ]; do sleep 0.05; done; kill -9 $$""")
        self.assertEqual((code, out), (128 + 9, "1\n"))
        self.assertTrue((self.meet / "terminated0").exists(), "the job was not asked to end")

    def test_signals_end_it(self):
        command = 'trap "exit 3" TERM; touch up; while :; do sleep 0.05; done'
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            cluster = self.start("--nodes", "1", "--", "sh", "-c", command)
            self.wait_for_files("up")
            (self.meet / "up").unlink()
            cluster.send_signal(number)
            self.assertEqual(self.finish(cluster), (128 + number, "", ""))

    def test_a_signal_ends_it_while_it_starts(self):
        for milliseconds in (20, 60, 120, 250):
            cluster = self.start("--", "sleep", "1000")
            time.sleep(milliseconds / 1000)
            cluster.terminate()
            code, out, err = self.finish(cluster)
            self.assertIn((code, out), [(128 + signal.SIGTERM, ""), (-signal.SIGTERM, "")], err)

    def test_nothing_is_left_when_it_is_killed(self):
        cluster = self.start("--", "srun", "-N4", "-n4", "sh", "-c", TASK)
        self.wait_for_files(*(f"ready{i}" for i in range(4)))
        cluster.kill()
        cluster.communicate(timeout=PATIENCE)
        self.wait_for(lambda: not marked() and not os.listdir(self.temporary), "something is left")

    def test_what_went_wrong_is_one_line(self):
        for arguments, code, message in [
            (["--set", "Nonsense=1", "--", "true"], 1, "cluster: the daemon of control ended: .*Nonsense"),
            (["--logs", "nowhere", "--", "true"], 1, "cluster: munged did not start: .*nowhere"),
            (["--timeout", "0.1", "--nodes", "1", "--", "sleep", "1000"], 124, "cluster: sleep did not end after 0.1 s"),
            (["--nodes", "1", "--", "no-such-program"], 127, "cluster: no-such-program: No such file"),
            (["--nodes", "none", "--", "true"], 64, "cluster: argument --nodes: takes a number from 1 to 64"),
            (["--nodes", "2"], 64, "cluster: .*COMMAND"),
        ]:
            got, _, err = self.run_cluster(*arguments)
            self.assertEqual(got, code, err)
            self.assertRegex(err, message)
            self.assertEqual(err.count("\n"), 1, err)

    def test_says_which_privilege_is_missing(self):
        if os.getuid() != 0:
            self.skipTest("only root can give up a privilege")
        weaker = ("setpriv", "--bounding-set=-sys_admin", str(HERE / "cluster"))
        code, out, err = self.run_cluster("--", "true", program=weaker)
        self.assertEqual((code, out), (77, ""))
        self.assertRegex(err, "^cluster: cannot make namespaces .*CAP_SYS_ADMIN.*\n$")

    def test_says_what_is_missing(self):
        self.environment["PATH"] = str(self.meet)
        code, _, err = self.run_cluster("--", "true", program=(sys.executable, str(HERE / "cluster")))
        self.assertEqual(code, 77)
        self.assertRegex(err, "^cluster: not installed: .*srun.*scripts/setup test.*\n$")


if __name__ == "__main__":
    probe = subprocess.run([str(HERE / "cluster"), "--nodes", "1", "--", "true"], timeout=PATIENCE)
    if probe.returncode == 77:
        sys.exit(77)
    unittest.main()
