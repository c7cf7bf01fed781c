# SPDX-License-Identifier: Apache-2.0
"""The loop of bench/gpu_speed.py: begins tasks as far as there are processors and processes that measure, hears what they have found, and says for each what it took. Its processes are given to it,
so that it runs without a GPU in tests."""
import datetime
import json
import os
import select
import shutil
import sys
import time

import gpu_rows
import gpu_schedule
from gpu_schedule import COMPILE_MAX, Schedule, Task

FLOOR = 6 << 30  # bytes on the disk below which nothing is made until something was measured
FAILURES = 3  # of a process that measures, before its first answer: then there is no other try
COMPILERS = 6  # at a time, as each has a module on the GPU


def notes(args, text):
    print(f"{time.monotonic() - args.begin:5.0f} s  {text}", file=sys.stderr, flush=True)


class Run:
    """`families`: (Family, exporters). `keeper`: of a family and its exporters, the starter's end of its process (gpu_family.Keeper). `stations`: processes that measure.
    `requests`: kind -> function of family, task and what the task that it needs has found."""

    def __init__(self, args, families, keeper, stations, requests):
        self.args, self.keeper, self.stations, self.requests = args, keeper, stations, requests
        self.families = {(family.name, family.batch): (family, exporters) for family, exporters in families}
        self.rows = gpu_rows.Rows(args.models, args.precisions, args.half)
        self.schedule = Schedule(gpu_schedule.tasks(families, args.precisions, half=args.half, peers=args.peers, ort=args.ort, compiled=args.compile))
        self.keepers, self.began, self.timeline, self.saved, self.rest = {}, {}, [], 0, b""
        self.heard, args.words = os.pipe()
        os.set_blocking(self.heard, False)

    # What is begun.

    def dispatch(self):
        while self.processors() < self.args.jobs and (task := self.schedule.ready("cpu", self.must_wait)):
            self.start(task)
            of = task.name[1:3]
            if task.name[0] == "make":
                self.keepers[of] = self.keeper(*self.families[of])
            else:
                self.keepers[of].ask(task.name)
        for station in self.stations:
            while station.idle() and (task := self.schedule.ready(station.kind)):
                self.measure(station, task)

    def measure(self, station, task):
        family, _ = self.families[task.name[1:3]]
        self.start(task)
        if self.needless(task):
            self.finish(task, {"well": True})
            return
        try:
            station.ask(task, self.requests[station.kind](family, task, self.schedule.tasks[task.needs[0]].found))
        except ValueError as error:
            self.finish(task, {"well": False, "problem": str(error)})

    def start(self, task):
        task.state = "running"
        self.began[task.name] = time.monotonic()

    def processors(self):
        return sum(task.kind == "cpu" for task in self.schedule.of("running"))

    def must_wait(self, task):
        """For a compiler's place, or for room on the disk, which what runs will make."""
        running = self.schedule.of("running")
        if task.name[0].startswith("compile"):
            return sum(other.name[0].startswith("compile") for other in running) >= COMPILERS
        return task.name[0] in ("export", "plan", "narrow") and bool(running) and shutil.disk_usage(self.args.work).free < FLOOR

    def needless(self, task):
        """ONNX Runtime on the other exporter's file, where the first is measured: what both write of convolutions is alike."""
        family, exporters = self.families[task.name[1:3]]
        found = self.rows.ort.get((*task.name[1:3], task.name[5])) if task.name[0] == "ort" else None
        return bool(found and family.channels_last and gpu_rows.best_of(found, gpu_rows.ORT_MODES))

    # What is heard.

    def listen(self):
        """What was said within a moment."""
        heard, _, _ = select.select([self.heard, *(station.heard for station in self.stations)], [], [], 0.1)
        if self.heard in heard:
            *lines, self.rest = (self.rest + os.read(self.heard, 1 << 16)).split(b"\n")
            for line in lines:
                self.take(*json.loads(line))
        for station in [s for s in self.stations if s.heard in heard]:
            for answer in station.answers():
                self.take_answer(station, answer)
        if time.monotonic() > self.saved + 2:
            self.save()

    def take(self, what, key, found):
        if what != "ended":
            self.rows.take(what, tuple(key), found)
            return
        task = self.schedule.tasks[tuple(key)]
        if task.state == "running":
            self.finish(task, {"well": False} | found)

    def take_answer(self, station, answer):
        what = {"ours": "row", "torch": "peer", "ort": "ort"}[station.kind]
        if "key" in answer:
            self.rows.take(what, tuple(answer["key"]), answer["found"] | ({"plan": str(self.plan_of(station.task))} if what == "row" else {}))
        elif "ended" in answer:
            task, found = station.task, answer["ended"]
            station.task, station.ready = None, "problem" not in found
            station.failures = 0
            self.finish(task, found | {"well": "problem" not in found})
        elif "gone" in answer:
            self.replace(station, "its process ended")

    def plan_of(self, task):
        return self.families[task.name[1:3]][0].plan(*task.name[3:])

    def replace(self, station, problem):
        """Of a process that measures, and has ended or was not heard of in time: a fresh one, or none if they do not even start."""
        task, was_ready = station.task, station.ready or station.task
        if task:
            self.finish(task, {"well": False, "problem": problem})
        station.restart()
        if was_ready:
            station.failures = 0
        elif station.failures >= FAILURES:
            station.stop()
            self.stations.remove(station)
            self.give_up(station)

    def give_up(self, station):
        if any(other.kind == station.kind for other in self.stations):
            return
        for task in self.schedule.of("waiting"):
            if task.kind == station.kind:
                self.finish(task, {"well": False, "problem": f"the process that measures does not start: {station.last_words()}"})

    def finish(self, task, found):
        """The end of a task: what it took, its reason if it failed, and files that nobody needs any more."""
        began = self.began.get(task.name, time.monotonic())
        took = found.get("seconds", round(time.monotonic() - began, 2))
        self.schedule.end(task, found["well"], found)
        self.timeline.append([" ".join(map(str, task.name)), round(began - self.args.begin, 1), took, found.get("turn_s", 0), found.get("wait_s", 0)])
        turn = f", of them {found['turn_s']:.1f} s of the GPU and {found['wait_s']:.1f} s waiting for it" if found.get("turn_s") else ""
        notes(self.args, f"{self.timeline[-1][0]}: {took:.1f} s{turn}{'' if found['well'] else '; failed: ' + found.get('problem', '')[-160:]}")
        if not found["well"] and task.problem:
            what, key, word = task.problem
            self.rows.take(what, tuple(key), {word: found.get("problem", "")[-300:]})
        if not self.args.keep:
            self.clear(task)

    def clear(self, task):
        for path in self.schedule.unused(task):
            path.unlink(missing_ok=True)
        if task.name[0] == "ours":
            family, of = self.families[task.name[1:3]][0], task.name[3:]
            for name in [*self.args.without, *([None] if task.state == "failed" else [])]:
                family.plan(*of, name).unlink(missing_ok=True)
            self.rows.drop_plans(*task.name[1:3])

    def end_late(self):
        """Stops what takes longer than it may."""
        now = time.monotonic()
        for task in self.schedule.of("running"):
            limit = 2 * self.args.compile_limit + 60 if task.name[0].startswith("compile") else self.args.limit
            if task.kind == "cpu" and now > self.began[task.name] + limit:
                of = task.name[1:3]
                if task.name[0] == "make":
                    self.keepers[of].stop()
                else:
                    self.keepers[of].ask(["stop", task.name])
                self.finish(task, {"well": False, "problem": f"not ended in {limit} s"})
        for station in list(self.stations):
            if station.task and now > station.begin + self.args.turn_limit:
                self.replace(station, f"not measured in {self.args.turn_limit} s")

    def bury(self):
        """Tasks of families whose process has ended by itself."""
        for of, keeper in self.keepers.items():
            if not keeper.process.is_alive():
                for task in self.schedule.of("running"):
                    if task.kind == "cpu" and task.name[1:3] == of:
                        self.finish(task, {"well": False, "problem": f"the family's process ended with {keeper.process.exitcode}"})

    def tune(self):
        """Behind all others, torch.compile with more trying, where PyTorch is nearest."""
        if not self.args.compile or any(task.kind == "cpu" for task in self.schedule.of("waiting")) or self.processors() >= max(1, self.args.jobs // 2):
            return
        for model, batch, precision in self.rows.closest(self.args.near):
            name = "compile_max", model, batch, precision
            if name not in self.schedule.tasks and self.families[model, batch][1] != ["generated"]:
                self.schedule.add(Task(name, "cpu", COMPILE_MAX, 0, problem=("peer", [model, batch, precision], "compile_max_problem")))
                return

    def until(self, end):
        try:
            while time.monotonic() < end(self) and self.schedule.of("waiting", "running"):
                self.dispatch()
                self.listen()
                self.end_late()
                self.bury()
                self.tune()
        finally:
            for process in [*self.stations, *self.keepers.values()]:
                process.stop()

    # What is written.

    def result(self):
        args, rows = self.args, self.rows.all()
        return {"benchmark": "gpu_exports", "date": datetime.date.today().isoformat(), "machine": args.machine, "target": args.target, "seconds": round(time.monotonic() - args.begin),
                "versions": args.versions, "what": args.what, "compile_max": args.compile_max, "quantised": args.quantised, "summary": gpu_rows.summary(rows), "phases": phases(self.timeline), "stages": self.schedule.progress(),
                "timeline": self.timeline, "rows": rows, "not_reached": list(self.rows.missing())}

    def save(self):
        self.saved = time.monotonic()
        if self.args.save:
            before = self.args.save.with_suffix(".part")
            before.write_text(json.dumps(self.result(), indent=1) + "\n")
            before.replace(self.args.save)


def phases(timeline):
    """What tasks of each name took: how many, seconds in all and of the longest, seconds of the GPU and waiting for it, when the first and the last ended."""
    found = {}
    for name, began, took, turn, waited in timeline:
        row = found.setdefault(name.split()[0], {"tasks": 0, "seconds": 0, "longest": 0, "turn_s": 0, "wait_s": 0, "first_end": began + took, "last_end": 0})
        row |= {"tasks": row["tasks"] + 1, "seconds": round(row["seconds"] + took, 1), "longest": max(row["longest"], took), "turn_s": round(row["turn_s"] + turn, 1), "wait_s": round(row["wait_s"] + waited, 1),
                "first_end": round(min(row["first_end"], began + took), 1), "last_end": round(max(row["last_end"], began + took), 1)}
    return found


def stage_lines(found):
    for stage, row in found.items():
        yield f"{stage}: {row['done']} of {row['tasks']} tasks done" + (f", {row['failed']} failed" if row["failed"] else "")


def phase_lines(found):
    yield f"{'task':12} {'ended':>5} {'seconds':>8} {'longest':>8} {'GPU s':>7} {'waited':>7} {'first':>6} {'last':>6}"
    for name, row in sorted(found.items(), key=lambda item: item[1]["first_end"]):
        yield f"{name:12} {row['tasks']:5} {row['seconds']:8.1f} {row['longest']:8.1f} {row['turn_s']:7.1f} {row['wait_s']:7.1f} {row['first_end']:6.1f} {row['last_end']:6.1f}"
