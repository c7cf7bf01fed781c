# SPDX-License-Identifier: Apache-2.0
"""Tests of what bench/gpu_speed.py does without a GPU; run by tests/scripts/bench.sh."""
import multiprocessing
import os
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))
import gpu_rows  # noqa: E402
import table  # noqa: E402
import turns  # noqa: E402

BOTH = ["dynamo", "script"]


def filled():
    rows = gpu_rows.Rows([("net", [1, 32], BOTH)], ["fp16", "tf32"], True)
    for exporter, ms in zip(BOTH, (0.2, 0.3)):
        rows.take("row", ("net", 1, exporter, False, "fp16"), {"device_ms": ms, "wall_ms": 0.5, "plan": exporter})
    rows.take("row", ("net", 1, "script", True, "fp16"), {"device_ms": 0.25, "wall_ms": 0.5})
    rows.take("peer", ("net", 1, "fp16"), {"graph": 0.9, "wall_ms": 1.0})
    rows.take("peer", ("net", 1, "fp16"), {"compile": 0.6, "compile_max": 0.4})
    rows.take("ort", ("net", 1, "fp16"), {"graph": 0.8, "graph_nhwc": 0.7, "error": "run: no"})
    return rows


class TestRows(unittest.TestCase):
    def test_rows_wanted(self):
        keys = list(gpu_rows.wanted([("net", [1], BOTH), ("gpt_step", [8], ["script"]), ("many", [1], ["generated"])], ["fp16", "tf32"], True))
        self.assertEqual(sum(k[0] == "net" for k in keys), 6)
        self.assertEqual([k[2:] for k in keys if k[0] == "gpt_step"], [("script", False, "tf32"), ("script", True, "fp16")])
        self.assertEqual([k[3] for k in keys if k[0] == "many"], [False, False])
        self.assertEqual(len(keys), len(set(keys)))
        self.assertFalse(any(k[3] for k in gpu_rows.wanted([("net", [1], BOTH)], ["fp16", "tf32"], False)))

    def test_rows_beside_the_better_peer(self):
        rows = filled()
        ratios = {(r["batch"], r["exporter"], r["half"], r["precision"]): r["ratio"] for r in rows.all()}
        self.assertAlmostEqual(ratios[1, "dynamo", False, "fp16"], 0.5)
        self.assertAlmostEqual(ratios[1, "script", False, "fp16"], 0.75)
        self.assertIsNone(ratios[1, "script", False, "tf32"])
        self.assertEqual(gpu_rows.summary(rows.all())["rows"], 3)
        self.assertEqual(rows.closest(), [("net", 1, "fp16")])
        self.assertEqual(rows.closest(0.8), [])
        self.assertIsNone(gpu_rows.summary([]))

    def test_rows_that_failed_say_why(self):
        rows = filled()
        rows.take("row", ("net", 32, "dynamo", None, None), {"problem": "no such op"})
        rows.take("peer", ("net", 32, "tf32"), {"compile_problem": "too late"})
        rows.take("row", ("net", 32, None, None, None), {"ort_problem": "no provider"})
        said = list(rows.missing())
        self.assertEqual(said.count("net b32: ONNX Runtime: no provider"), 1)
        self.assertIn("net tf32 b32 dynamo: no such op", said)
        self.assertIn("net fp16 half b32 dynamo: no such op", said)
        self.assertIn("net tf32 b32 script: not reached", said)
        self.assertIn("net tf32 b32: PyTorch: too late", said)
        self.assertFalse(any("net fp16 b1 " in line or "ONNX Runtime: run" in line for line in said))

    def test_rows_with_results_that_are_no_numbers(self):
        nan = float("nan")
        for a, b in ((0.0, nan), (nan, 0.5), (nan, nan)):
            self.assertNotEqual(gpu_rows.larger(a, b), gpu_rows.larger(a, b))
        self.assertEqual([gpu_rows.larger(0.1, 0.2), gpu_rows.larger(0.2, 0.1), gpu_rows.larger(0.1, float("inf"))], [0.2, 0.1 + 0.1, float("inf")])

    def test_rows_keep_the_file_that_onnxruntime_runs_fastest(self):
        rows, key = gpu_rows.Rows([("net", [1], BOTH)], ["fp16"], False), ("net", 1, "fp16")
        rows.take("ort", key, {"graph": 0.8, "error": "graph_nhwc: no", "file": "script"})
        rows.take("ort", key, {"graph": 0.9, "file": "dynamo"})
        rows.take("ort", key, {"error": "no such op"})
        self.assertEqual(rows.ort[key]["file"], "script")
        rows.take("ort", key, {"run": 0.7, "file": "dynamo"})
        self.assertEqual(rows.ort[key], {"name": "net", "batch": 1, "precision": "fp16", "run": 0.7, "file": "dynamo"})

    def test_rows_take_pytorchs_other_layout_host_to_host_if_it_is_faster(self):
        for other, wall in ((0.4, 0.6), (0.6, 0.7)):
            rows, key = gpu_rows.Rows([("net", [1], BOTH)], ["fp16"], False), ("net", 1, "fp16")
            rows.take("peer", key, {"graph": 0.5, "wall_ms": 0.7})
            rows.take("peer", key, {"graph_channels_first": other, "wall_ms": 0.6})
            self.assertEqual((rows.peers[key]["graph_channels_first"], rows.peers[key]["wall_ms"]), (other, wall))

    def test_rows_shown_are_the_slower_exporters(self):
        shown = filled().shown()
        self.assertEqual(shown["net", 1, False, "fp16"]["plan"], "script")
        self.assertEqual(len(shown), 2)

    def test_rows_not_shown_leave_no_plans(self):
        rows = filled()
        with tempfile.TemporaryDirectory() as directory:
            for exporter in BOTH:
                path = Path(directory) / exporter
                path.touch()
                rows.take("row", ("net", 1, exporter, False, "fp16"), {"plan": str(path)})
            rows.drop_plans("net", 1)
            self.assertEqual(os.listdir(directory), ["script"])

    def test_rows_as_lines(self):
        lines = list(gpu_rows.lines(filled().all()))
        self.assertEqual(len(lines), 5)
        self.assertIn("of 3 rows, largest 0.75, above 1: 0", lines[-1])


class TestTable(unittest.TestCase):
    def result(self):
        rows = filled()
        rows.rows["net", 1, "script", False, "fp16"] |= {"ready_ms": 240.4, "first_ms": 1.5}
        return {"machine": {"gpu": "NVIDIA H"}, "date": "2026-01-02", "versions": {"pytorch": "2", "onnxruntime": "1"}, "compile_max": "max-autotune", "rows": rows.all()}

    def test_table_of_one_run(self):
        text = list(table.exports(self.result()))
        self.assertIn("torch.compile's module in one (default for 1, max-autotune for 1)", text[0])
        self.assertIn("geometric mean 0.68, largest 0.75 of 2 figures. 9 of 12 rows were not reached.", text[0])
        self.assertEqual(text[2], "| model, batch | float16 | exported in half | host to host, float16 | ready + first result, float16 |")
        self.assertEqual(text[4], "| net, 1 | **0.30** / 0.40 / 0.70 | **0.25** / 0.40 / 0.70 | **0.50** / 1.00 / - | 240 + 1.50 |")

    def test_table_without_peers(self):
        result = self.result()
        for row in result["rows"]:
            row |= {"peer": {}, "ort": {}, "ratio": None}
        self.assertTrue(list(table.exports(result))[4].startswith("| net, 1 | **0.30** / - / - |"))


def hold(path, shared, seconds, began):
    with turns.turn(path, shared):
        began.set()
        time.sleep(seconds)


def take_part(path, shared, order):
    with turns.turn(path, shared):
        order.put(shared)
        time.sleep(0.2)


def come_late(path, order):
    with turns.turn(path, late=True):
        order.put("late")


def leave(path, seconds, began):
    turns.leave(path)
    began.set()
    time.sleep(seconds)


class TestTurns(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.directory.name, "turn")

    def tearDown(self):
        self.directory.cleanup()

    def waited(self, theirs, ours):
        """Seconds until this process has a turn, while another one holds one for 0.4 s."""
        began = multiprocessing.Event()
        other = multiprocessing.Process(target=hold, args=(self.path, theirs, 0.4, began))
        other.start()
        began.wait(10)
        begin = time.monotonic()
        with turns.turn(self.path, ours), turns.turn(self.path):
            took = time.monotonic() - begin
        other.join()
        return took

    def test_turns_wait_unless_both_share(self):
        self.assertGreater(self.waited(False, False), 0.3)
        self.assertGreater(self.waited(True, False), 0.3)
        self.assertGreater(self.waited(False, True), 0.3)
        self.assertLess(self.waited(True, True), 0.3)

    def test_turns_of_ones_own_come_before_shared_ones(self):
        order, began = multiprocessing.Queue(), multiprocessing.Event()
        others = [multiprocessing.Process(target=hold, args=(self.path, False, 1, began)), multiprocessing.Process(target=take_part, args=(self.path, False, order)),
                  multiprocessing.Process(target=take_part, args=(self.path, True, order))]
        others[0].start()
        began.wait(10)
        others[1].start()
        end = time.monotonic() + 10
        while not turns.is_wanted(self.path) and time.monotonic() < end:
            time.sleep(0.01)
        others[2].start()
        self.assertEqual([order.get(timeout=10) for _ in range(2)], [False, True])
        for other in others:
            other.join()

    def test_turns_of_the_late_come_behind_others_but_come(self):
        order, began = multiprocessing.Queue(), multiprocessing.Event()
        first = multiprocessing.Process(target=hold, args=(self.path, False, 0.5, began))
        late, usual = multiprocessing.Process(target=come_late, args=(self.path, order)), multiprocessing.Process(target=take_part, args=(self.path, False, order))
        first.start()
        began.wait(10)
        late.start()
        time.sleep(0.1)  # it asks first
        usual.start()
        self.assertEqual([order.get(timeout=10) for _ in range(2)], [False, "late"])
        for process in (first, late, usual):
            process.join()

    def test_turns_of_the_late_come_while_others_always_ask(self):
        order = multiprocessing.Queue()
        with mock.patch.object(turns, "LATE", 0.2), open(f"{self.path}.wanted", "w") as wanted:
            turns.fcntl.flock(wanted, turns.fcntl.LOCK_SH)
            late = multiprocessing.Process(target=come_late, args=(self.path, order))
            late.start()
            self.assertEqual(order.get(timeout=10), "late")
            late.join()

    def test_turns_count_their_seconds_and_keep_to_their_processors(self):
        before, all_of_them = turns.spent(), os.sched_getaffinity(0)
        one = {min(all_of_them)}
        try:
            with mock.patch.object(turns, "cpus", (one, all_of_them)), turns.turn(self.path):
                self.assertEqual(os.sched_getaffinity(0), one)
                time.sleep(0.05)
            self.assertEqual(os.sched_getaffinity(0), all_of_them)
        finally:
            os.sched_setaffinity(0, all_of_them)
        self.assertGreaterEqual(turns.since(before)["turn_s"], 0.05)
        self.assertLess(turns.since(before)["wait_s"], 0.05)

    def test_turns_left_last_until_the_process_ends(self):
        began = multiprocessing.Event()
        other = multiprocessing.Process(target=leave, args=(self.path, 0.4, began))
        other.start()
        began.wait(10)
        begin = time.monotonic()
        with turns.turn(self.path):
            self.assertGreater(time.monotonic() - begin, 0.3)
        other.join()

    def test_turns_of_a_killed_process_end(self):
        began = multiprocessing.Event()
        other = multiprocessing.Process(target=hold, args=(self.path, False, 60, began))
        other.start()
        began.wait(10)
        other.kill()
        with turns.turn(self.path):
            other.join()

    def test_turns_without_a_path_are_free(self):
        with turns.turn(None), turns.turn(None):
            pass


if __name__ == "__main__":
    unittest.main()
