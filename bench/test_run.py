# SPDX-License-Identifier: Apache-2.0
"""Tests of how bench/gpu_speed.py goes about a run, with processes that only say that they make and measure; run by tests/scripts/bench.sh."""
import argparse
import json
import os
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import gpu_predict  # noqa: E402
import gpu_schedule  # noqa: E402
from gpu_family import Keeper  # noqa: E402
from gpu_run import Run, phases  # noqa: E402
from gpu_stations import Station  # noqa: E402
from gpu_words import Family, say  # noqa: E402

BENCH = Path(__file__).resolve().parent
BOTH = ["dynamo", "script"]
PRECISIONS = ["fp16", "tf32"]


def settings(work, **more):
    """What the command line would say."""
    usual = {"work": Path(work), "begin": time.monotonic(), "models": [("net", [1, 32], BOTH)], "precisions": PRECISIONS, "half": True, "peers": True, "ort": True, "compile": True, "jobs": 4,
             "keep": False, "without": [], "near": 0.4, "limit": 60, "turn_limit": 60, "compile_limit": 60, "save": Path(work) / "saved.json", "machine": {"gpu": "none"}, "target": "sm_90",
             "versions": {"pytorch": "2", "onnxruntime": "1"}, "what": "fakes", "compile_max": "max-autotune", "quantised": None, "seconds": 0.01}
    return argparse.Namespace(**usual | more)


def families(args):
    return [(Family(args, name, batch), exporters) for name, batches, exporters in args.models for batch in batches]


def schedule(args):
    return gpu_schedule.Schedule(gpu_schedule.tasks(families(args), args.precisions, half=args.half, peers=args.peers, ort=args.ort, compiled=args.compile))


class TestSchedule(unittest.TestCase):
    def tasks(self, **more):
        return schedule(settings("/nowhere", **more))

    def names(self, plan, what):
        return [task.name for task in plan.tasks.values() if task.name[0] == what]

    def test_schedule_has_a_task_for_each_row(self):
        plan = self.tasks(models=[("net", [1, 32], BOTH), ("gpt_step", [8], ["script"]), ("many", [1], ["generated"])])
        import gpu_rows
        wanted = set(gpu_rows.wanted([("net", [1, 32], BOTH), ("gpt_step", [8], ["script"]), ("many", [1], ["generated"])], PRECISIONS, True))
        self.assertEqual({name[1:] for name in self.names(plan, "ours")}, wanted)
        self.assertEqual(len(self.names(plan, "ours")), len(wanted))

    def test_schedule_begins_with_the_quick_exporter_and_the_smallest_batch(self):
        plan, order = self.tasks(models=[("a", [32, 1], BOTH), ("b", [8], BOTH)]), []
        while task := plan.ready("cpu") or plan.ready("torch") or plan.ready("ours") or plan.ready("ort"):
            plan.end(task, True)
            order.append(task)
        self.assertFalse(plan.of("waiting"))
        self.assertEqual([task.name[:3] for task in order[:2]], [("make", "a", 1), ("export", "a", 1)])
        stages = [task.stage for task in order if task.name[0] == "export"]
        self.assertEqual(stages, sorted(stages))
        self.assertEqual([task.name[3] for task in order if task.name[0] == "export"][:3], ["script"] * 3)
        self.assertEqual({task.name[0] for task in order[-2:] if task.kind == "cpu"} - {"compile"}, set())

    def test_schedule_fails_what_needs_a_failure_and_promotes_the_other_exporter(self):
        plan = self.tasks()
        plan.end(plan.tasks["make", "net", 1], True)
        plan.end(plan.tasks["export", "net", 1, "script", False], False)
        self.assertEqual(plan.tasks["ours", "net", 1, "script", False, "tf32"].state, "failed")
        self.assertEqual(plan.tasks["ort", "net", 1, "script", False, "tf32"].state, "failed")
        self.assertEqual(plan.tasks["torch", "net", 1].state, "waiting")
        self.assertEqual(plan.ready("cpu").name, ("export", "net", 1, "dynamo", False))
        plan.end(plan.tasks["make", "net", 32], False)
        self.assertFalse([task for task in plan.of("waiting") if task.name[2] == 32])

    def test_schedule_keeps_files_that_somebody_will_use(self):
        plan = self.tasks()
        export, path = ("net", 1, "script", False), Path("/nowhere/net.full.b1.script.onnx")
        for name in (("make", "net", 1), ("export", *export), ("plan", *export, "fp16"), ("plan", *export, "tf32"), ("narrow", *export)):
            task = plan.tasks[name]
            plan.end(task, True)
            self.assertEqual(plan.unused(task), [])
        plan.end(plan.tasks["ort", *export, "tf32"], True)
        self.assertEqual(plan.unused(plan.tasks["ort", *export, "tf32"]), [path])

    def test_schedule_compares_behind_pytorch_and_without_it(self):
        plan, key = self.tasks(), ("net", 1, "script", False, "fp16")
        for name in (("make", "net", 1), ("export", *key[:4]), ("plan", *key), ("ours", *key)):
            plan.end(plan.tasks[name], True)
        self.assertFalse(plan.may_begin(plan.tasks["compare", *key]))
        plan.end(plan.tasks["torch", "net", 1], False)
        self.assertTrue(plan.may_begin(plan.tasks["compare", *key]))


def keeper_that_says(args, name, batch, exporters, asked):
    """A family's process that makes empty files. What is named "broken" fails, what is named "gone" ends."""
    os.setsid()
    if name == "gone":
        os._exit(3)
    family = Family(args, name, batch)
    say(args, "ended", ["make", name, batch], {"well": True})
    for line in os.fdopen(asked):
        task = json.loads(line)
        if task[0] == "export":
            family.path(*task[3:]).touch()
        if task[0] == "plan":
            family.plan(*task[3:]).touch()
        if task[0].startswith("compile"):
            say(args, "peer", [name, batch, PRECISIONS[0] if len(task) < 4 else task[3]], {task[0]: 0.5})
        well = not (name == "broken" and task[0] == "export")
        say(args, "ended", task, {"well": well, "convolutions": False, "beside": [], **({} if well else {"problem": "no such op"})})


STATION = """
import sys
sys.path.insert(0, {bench!r})
import serving
def handle(request, say):
    name = request["task"][1]
    if name == "crash":
        import os
        os._exit(5)
    if name == "refused":
        raise RuntimeError("no such kernel")
    if name == "slow":
        import time
        time.sleep(60)
    for key in request["keys"]:
        say(key, request["found"])
sys.exit(serving.serve(handle))
"""


class TestRun(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def station(self, kind, program=None):
        return Station(kind, [sys.executable, "-c", program or STATION.format(bench=str(BENCH))], None, Path(self.directory.name) / f"{kind}.log")

    def run_of(self, seconds=60, stations=None, **more):
        args = settings(self.directory.name, **more)
        request = lambda found, keys: lambda family, task, _: {"task": task.name, "keys": keys(task), "found": found}  # noqa: E731
        peer_keys = lambda task: [[*task.name[1:3], precision] for precision in PRECISIONS]  # noqa: E731
        requests = {"ours": request({"device_ms": 0.4, "wall_ms": 0.5}, lambda task: [task.name[1:]]), "torch": request({"graph": 0.8}, peer_keys),
                    "ort": request({"graph": 1.0, "file": "f"}, lambda task: [[*task.name[1:3], task.name[5]]])}
        run = Run(args, families(args), lambda family, exporters: Keeper(args, family.name, family.batch, exporters, keeper_that_says),
                  stations or [self.station(kind) for kind in ("ours", "torch", "ort")], requests)
        end = time.monotonic() + seconds
        with open(os.devnull, "w") as null:
            shown, sys.stderr = sys.stderr, null
            try:
                run.until(lambda _: end)
            finally:
                sys.stderr = shown
        self.assertLess(time.monotonic(), end, "it did not end by itself")
        return run

    def test_run_measures_all_rows_and_leaves_no_files(self):
        run = self.run_of()
        rows = run.rows.all()
        self.assertEqual(len(rows), 12)
        self.assertEqual({row["ratio"] for row in rows if row["precision"] == "fp16"}, {0.8})
        self.assertEqual({row["ratio"] for row in rows if row["precision"] == "tf32"}, {0.8})
        self.assertEqual(run.rows.peers["net", 1, "fp16"]["compile_max"], 0.5)
        self.assertEqual(list(run.rows.missing()), [])
        left = [path.name for path in Path(self.directory.name).iterdir() if path.suffix in (".onnx", ".npz")]
        self.assertEqual(left, [])
        run.save()
        saved = json.loads((Path(self.directory.name) / "saved.json").read_text())
        self.assertEqual(saved["phases"]["ours"]["tasks"], 12)
        self.assertEqual(len(saved["timeline"]), len(run.schedule.tasks))
        self.assertEqual([row["done"] for row in saved["stages"].values()], [row["tasks"] for row in saved["stages"].values()])

    def test_run_goes_on_behind_what_fails(self):
        models = [(name, [1], ["script"]) for name in ("broken", "gone", "refused", "crash", "net")]
        run = self.run_of(models=models, half=False, compile=False)
        said = "\n".join(run.rows.missing())
        for line in ("broken fp16 b1 script: no such op", "gone tf32 b1 script: the family's process ended with 3", "refused fp16 b1 script: RuntimeError: no such kernel",
                     "crash tf32 b1 script: its process ended", "refused b1: PyTorch: RuntimeError: no such kernel", "refused fp16 b1: ONNX Runtime: RuntimeError: no such kernel"):
            self.assertIn(line, said)
        self.assertNotIn("net ", said)
        self.assertEqual(sum(bool(row["ratio"]) for row in run.rows.all()), 2)

    def test_run_replaces_what_takes_too_long(self):
        run = self.run_of(models=[("slow", [1], ["script"]), ("net", [1], ["script"])], half=False, compile=False, turn_limit=1)
        self.assertIn("slow fp16 b1 script: not measured in 1 s", list(run.rows.missing()))
        self.assertEqual(sum(bool(row["ratio"]) for row in run.rows.all()), 2)

    def test_run_without_a_peer_that_starts(self):
        stations = [self.station("ours"), self.station("torch"), self.station("ort", "raise SystemExit('no provider')")]
        run = self.run_of(stations=stations, compile=False)
        self.assertEqual({row["ratio"] for row in run.rows.all()}, {0.5})
        self.assertTrue(any("does not start: no provider" in line for line in run.rows.missing()))

    def test_run_ends_in_time_and_says_what_was_not_reached(self):
        args_end = time.monotonic() + 1.5
        with self.assertRaises(AssertionError):
            self.run_of(seconds=1.5, models=[("slow", [1], ["script"])], half=False, compile=False)
        self.assertLess(time.monotonic(), args_end + 3)

    def test_run_counts_phases(self):
        found = phases([["plan a 1", 1.0, 2.0, 0, 0], ["plan b 1", 2.0, 4.0, 0.5, 1.5]])
        self.assertEqual(found["plan"], {"tasks": 2, "seconds": 6.0, "longest": 4.0, "turn_s": 0.5, "wait_s": 1.5, "first_end": 3.0, "last_end": 6.0})


class TestPrediction(unittest.TestCase):
    def test_prediction_reaches_all_rows_of_the_table(self):
        reached = gpu_predict.predicted(processors=13, minutes=10)
        self.assertEqual(reached["rows"], 168)
        self.assertLess(reached["first_row"], 20)
        self.assertLess(reached["last_row"], 540)

    def test_prediction_like_an_earlier_run(self):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "result.json"
            path.write_text(json.dumps({"timeline": [["ours bert 1 script False fp16", 20, 9.0, 6.0, 2.0], ["ours lstm 1 script False fp16", 20, 3.0, 2.0, 1.0]]}))
            seconds_of = gpu_predict.like(path)
        task = lambda *name: gpu_schedule.Task(name, "ours", 0, 0)  # noqa: E731
        self.assertEqual(seconds_of(task("ours", "bert", 1, "script", False, "fp16")), (1.0, [3.0, 3.0]))
        self.assertEqual(seconds_of(task("ours", "unet", 1, "script", False, "fp16")), (0.5, [4.0]))
        self.assertEqual(seconds_of(task("make", "lstm", 1)), gpu_predict.estimated(task("make", "lstm", 1)))

    def test_prediction_of_less_time_has_the_named_models_first(self):
        reached = gpu_predict.predicted(processors=13, minutes=2.5)
        self.assertLess(reached["rows"], 168)
        self.assertGreater(reached["rows"], 17)


if __name__ == "__main__":
    unittest.main()
