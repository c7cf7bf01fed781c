# SPDX-License-Identifier: Apache-2.0
"""Tests of what bench/device_turns.py, product_accuracy.py, cpu_speed.py, cpu_turns.py and moved_bytes.py make of what was measured; run by tests/scripts/bench.sh."""
import argparse
import importlib.util
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))
import clock  # noqa: E402
import common  # noqa: E402
import cpu_speed  # noqa: E402
import device_turns  # noqa: E402
import gpu_ours  # noqa: E402
import moved_bytes  # noqa: E402
import product_accuracy  # noqa: E402
from gpu_stations import Station  # noqa: E402

BENCH = Path(__file__).resolve().parent
NUMPY = all(importlib.util.find_spec(name) for name in ("numpy", "onnx"))
STATION = """
import sys
sys.path.insert(0, {bench!r})
import serving
def handle(request, say):
    if request["plan"] == "bad":
        raise RuntimeError("no such kernel")
    say([], {{"device_ms": request["ms"]}})
sys.exit(serving.serve(handle))
"""


class TestTurns(unittest.TestCase):
    def test_builds_take_turns(self):
        order = []
        times = device_turns.in_turns(2, [lambda: order.append("a") or 1.0, lambda: order.append("b") or 2.0])
        self.assertEqual((order, times), (["a", "b", "a", "b"], [[1.0, 1.0], [2.0, 2.0]]))

    def test_builds_as_a_line(self):
        row = {"model": "net", "batch": 8, "exporter": "dynamo", "precision": "tf32", "times": [[0.5, 0.51], [0.4, 0.41]], "same_bits": True, "torch": 0.9}
        self.assertEqual(device_turns.line(row), "| net | 8 | dynamo | tf32 | 0.5, 0.51 | 0.4, 0.41 | 0.9 | 0.800 | same |")
        self.assertIn("no such op", device_turns.line({"model": "net", "batch": 8, "exporter": "dynamo", "precision": "tf32", "problem": "no such op"}))

    def test_builds_of_one_name_are_told_apart(self):
        sides = [argparse.Namespace(args=argparse.Namespace(bundle=Path(path))) for path in ("/a/bundle", "/b/bundle", "/b/new")]
        self.assertIn("| /a/bundle | /b/bundle |", device_turns.head(sides[:2])[0])
        self.assertIn("| bundle | new |", device_turns.head(sides[1:])[0])

    def test_builds_that_fail_are_rows_with_their_reason(self):
        def no_file():
            raise RuntimeError("no such option")
        args = argparse.Namespace(precisions=["fp16"], rounds=1)
        with mock.patch.object(device_turns, "sources", lambda _: [("net", 1, "generated", no_file)]):
            found = list(device_turns.rows(args, [], None))
        self.assertEqual(found, [{"model": "net", "batch": 1, "exporter": "generated", "precision": "", "problem": "RuntimeError: no such option"}])

    def test_builds_models_are_named(self):
        self.assertEqual(device_turns.of_generator("llama_stack+--seq+1:1,8"), (["llama_stack", "--seq", "1"], [1, 8]))
        self.assertEqual(gpu_ours.parsed("resnet50:1,8:dynamo"), ("resnet50", [1, 8], ["dynamo"]))
        self.assertEqual(gpu_ours.parsed("parallel_fcn"), ("parallel_fcn", [], ["generated"]))
        for bad in ("no_such_model", "resnet50:1:tracer"):
            with self.assertRaises(argparse.ArgumentTypeError):
                gpu_ours.parsed(bad)

    def test_builds_stations_answer_and_fail_with_their_reason(self):
        with tempfile.TemporaryDirectory() as directory:
            station = Station("ours", [sys.executable, "-c", STATION.format(bench=str(BENCH))], None, Path(directory) / "log")
            try:
                self.assertEqual(station.answer({"plan": "good", "ms": 0.25}, 30), {"device_ms": 0.25})
                with self.assertRaisesRegex(RuntimeError, "no such kernel"):
                    station.answer({"plan": "bad"}, 30)
                self.assertEqual(station.answer({"plan": "good", "ms": 0.5}, 30), {"device_ms": 0.5})  # by a fresh process
            finally:
                station.stop()


class TestClock(unittest.TestCase):
    def test_clock_measures_as_many_as_the_time_has_room_for(self):
        for ms, seconds, most in ((2.0, 0.1, 10), (0.0001, 0.1, 2000), (500.0, 0.1, 5)):
            asked = []
            self.assertEqual(clock.back_to_back(lambda n: asked.append(n) or ms, seconds), ms)
            self.assertEqual(asked, [5] + [most] * 5)

    def test_clock_leaves_out_the_first_run(self):
        runs = []
        found = clock.host_to_host(lambda: time.sleep(0.1 if not runs else 0.001) or runs.append(0), 0)
        self.assertEqual(len(runs), 4)
        self.assertLess(found, 50)


class TestSideBySide(unittest.TestCase):
    def options(self, **more):
        return argparse.Namespace(threads=[1, 2], side_by_side=2, **more)

    def test_side_by_side_groups_share_no_processor(self):
        self.assertEqual(cpu_speed.groups([0, 1, 4, 5, 6], 2, 2), [[0, 1], [4, 5]])
        with self.assertRaisesRegex(SystemExit, "need 6 processors; there are 5"):
            cpu_speed.groups([0, 1, 4, 5, 6], 2, 3)

    def test_side_by_side_measures_all_on_their_own_processors(self):
        at_work, most = set(), []

        def measure(options, path, threads, processors):
            if path == "broken":
                raise RuntimeError("no such op")
            self.assertEqual(len(processors), threads)
            self.assertFalse(at_work & set(processors))
            at_work.update(processors)
            most.append(len(at_work))
            time.sleep(0.05)
            at_work.difference_update(processors)
            return {"model": path, "threads": threads}

        with mock.patch.object(cpu_speed, "measure", measure), mock.patch.object(cpu_speed.os, "sched_getaffinity", lambda _: {0, 1, 2, 3}):
            jobs = [(name, threads) for name in ("a", "b", "broken", "c") for threads in (1, 2)]
            found = dict(cpu_speed.side_by_side(self.options(), jobs))
        self.assertEqual(set(found), set(jobs))
        self.assertEqual([job for job, row in found.items() if isinstance(row, RuntimeError)], [job for job in found if job[0] == "broken"])
        self.assertGreater(max(most), 2)

    def test_side_by_side_summary(self):
        rows = [{"model": name, "threads": threads, "ratio": ratio} for name, threads, ratio in (("a", 1, 0.5), ("b", 1, 2.0), ("a", 2, 0.25))]
        summary = common.summary_of_ratios(rows, [1, 2, 4])
        self.assertEqual(summary["threads_1"], {"geomean": 1.0, "worst": 2.0, "worst_model": "b", "models": 2})
        self.assertEqual(summary["text"][1], "2 threads: geometric mean of 1 ratios 0.250, worst 0.250 (a)")
        self.assertNotIn("threads_4", summary)


@unittest.skipUnless(NUMPY, "no numpy, or no onnx")
class TestInOneProcess(unittest.TestCase):
    class Clock:
        """As much of `time` as is used; nothing else passes it."""
        now = 0.0

        def perf_counter(self):
            return self.now

        thread_time = perf_counter

        def sleep(self, seconds):
            self.now += seconds

    def turns(self, threads):
        """The order of runs, and the times that count; the first run behind another side's takes five times as long."""
        import cpu_turns
        order, clock = [], self.Clock()

        def side(name, length):
            clock.sleep(length if order[-1:] == [name] else 5 * length)
            order.append(name)
        with mock.patch.object(cpu_turns, "time", clock):
            found = cpu_turns.in_turns([lambda: side("a", 0.011), lambda: side("b", 0.001)], threads, 0)
        return "".join(order), found

    def test_in_process_blocks_take_turns(self):
        order, (a, b) = self.turns(1)
        self.assertEqual(order, "aabb" + 4 * "aabb")
        self.assertEqual((len(a), len(b)), (8, 8))

    def test_in_process_first_runs_of_threads_do_not_count(self):
        order, (a, b) = self.turns(2)
        block = int(0.08 / 0.011)
        self.assertEqual((len(a), len(b)), (4 * block, 4 * block))
        self.assertEqual(order, "aabb" + 4 * ("a" * (block + 1) + "b" * (block + 1)))
        self.assertAlmostEqual(max(a), 0.011)
        self.assertAlmostEqual(max(b), 0.001)

    def test_in_process_summary(self):
        import cpu_turns
        self.assertEqual(cpu_turns.summary([0.003, 0.001, 0.002], [0.004, 0.004, 0.005]),
                         {"ours_ms": 1.0, "onnxruntime_ms": 4.0, "ours_median_ms": 2.0, "onnxruntime_median_ms": 4.0, "runs": 3})


@unittest.skipUnless(NUMPY, "no numpy, or no onnx")
class TestAccuracy(unittest.TestCase):
    def test_accuracy_of_known_errors(self):
        import numpy as np
        right = np.array([1.0, -2.0, 4.0])
        self.assertEqual(product_accuracy.errors(right, right), (0, 0, 0))
        norm, largest, sign = product_accuracy.errors(right * (1 + 2**-10), right)
        self.assertAlmostEqual(norm, 2**-10)
        self.assertAlmostEqual(largest, 2**-10)
        self.assertAlmostEqual(sign, 2**-10 * (1 + 2 + 4) / 3 / 4)
        self.assertLess(product_accuracy.errors(right * (1 - 2**-10), right)[2], 0)

    def test_accuracy_of_convolutions_is_beside_the_right_result(self):
        import numpy as np
        normal, random = product_accuracy.NUMBERS["normal"], np.random.default_rng(1)
        node, (a, b) = product_accuracy.convolution("3x2,8x3-4", normal, random)
        found = product_accuracy.exact(node, a, b)
        self.assertEqual(found.shape, (1, 4, 4, 4))
        window = np.pad(a[0].astype(np.float64), ((0, 0), (1, 1), (1, 1)))[:, 2:5, 4:7]
        self.assertAlmostEqual(found[0, 3, 1, 2], (window * b[3]).sum())
        node, (a, b) = product_accuracy.product("3x4x5", normal, random)
        self.assertEqual(product_accuracy.exact(node, a, b).shape, (3, 5))


class TestMoves(unittest.TestCase):
    def plan(self, *edges, ops):
        lines = [f'  {name} [label="{op}" tooltip="n"];' for name, op in ops.items()]
        return moved_bytes.Plan("\n".join(lines + [f'  {a} -> {b} [label="{label}" tooltip="v"];' for a, b, label in edges]))

    def test_moved_and_chains(self):
        plan = self.plan(("input0", "step0", "float32[2x8x16]"), ("step0", "step1", "float32[8x2x16]"), ("step1", "step2", "float32[16x16]"),
                         ("step2", "step3", "float32[16x16]"), ("step3", "step4", "float32[16x16]"),
                         ops={"step0": "Transpose", "step1": "Reshape", "step2": "Add", "step3": "Pointwise f", "step4": "MatMul"})
        total, kinds, ops = plan.shares()
        self.assertEqual(dict(kinds), {"moves": 2048, "chains": 4096})
        self.assertEqual(total, 2048 + 4096 + 1024)
        self.assertEqual(set(ops), {"Transpose", "Add", "Pointwise"})

    def test_moved_parts(self):
        """Cutting reads what it writes; parts along the first dim are views."""
        plan = self.plan(("input0", "step0", "float16[4xn]"), ("step0", "step2", "float16[2xn]"), ("input1", "step1", "float32[4x8]"),
                         ("step1", "step2", "float32[4x2]"), ops={"step0": "Split", "step1": "Slice", "step2": "MatMul"})
        self.assertEqual(plan.steps, ["step1", "step2"])
        self.assertEqual(plan.bytes("step1"), 64)


if __name__ == "__main__":
    unittest.main()
