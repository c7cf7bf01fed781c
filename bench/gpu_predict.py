#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What bench/gpu_speed.py will have reached when: its own schedule, run with a clock that is only counted.

    gpu_predict.py [--processors 13] [--minutes 10] [--like RESULT.json]

Seconds of tasks: those of an earlier result's timeline, for a task that is not in it the mean of its name; without a result estimates, whose origins stand beside them. Needs no GPU and no packages.
"""
import argparse
import heapq
import itertools
import json
import math
from pathlib import Path
from statistics import mean

import gpu_schedule
from gpu_run import COMPILERS, stage_lines
from gpu_words import Family
from turns import LATE as PATIENCE

# Of README's models: processor seconds of a forward pass of one row (bench/results/cpu-full-size-2026-11-27-xeon.json), MB of weights, seconds until PyTorch's graph is captured, its cuDNN having
# tried engines (first_s of bench/results/gpu_exports-2026-11-24-h100.json, less what making the module takes in it), and of ONNX Runtime's first run in float16 (there).
MODELS = {"bert": (0.25, 440, 0.3, 0.1), "convnext_tiny": (0.15, 114, 2, 4.2), "dlrm": (0, 666, 0.1, 0.1), "efficientnet_b0": (0.03, 21, 8, 5.8), "gpt2": (0.27, 500, 0.3, 0.1),
          "lstm": (0.03, 20, 0.1, 0.1), "resnet50": (0.1, 102, 3, 0.4), "swin_t": (0.11, 113, 0.4, 0.2), "t5_encoder": (0.15, 140, 0.2, 0.1), "timm_vit_base_patch16_224": (0.4, 346, 0.3, 0.1),
          "unet": (0.12, 60, 1.4, 0.4), "vit_b_16": (0.4, 346, 0.3, 0.1), "wav2vec2": (0.8, 380, 0.6, 0.2), "whisper_encoder": (1.1, 80, 0.3, 0.2)}
CONVOLUTIONS = {"convnext_tiny", "efficientnet_b0", "resnet50", "swin_t", "unet", "vit_b_16", "timm_vit_base_patch16_224"}  # both layouts are measured
START = 8  # packages are imported
BEHIND = ("compile", "layout")  # their turns come behind others'
STATIONS = {"ours": 2, "torch": 2, "ort": 1}


def estimated(task):
    """(Seconds without the GPU, turns in seconds.)"""
    what, model, batch, *of = task.name
    forward, megabytes, captured, first = MODELS[model]
    if what == "make":
        return 1 + megabytes / 200 + (forward * batch if model in CONVOLUTIONS else 0), []
    if what == "export":  # torch.export's time is that of the trial of 2026-11-27 less what a hundred processes on sixteen processors wait
        exporter, half = of
        return 2 + megabytes / 100 + ((1 + half) * forward * batch if exporter == "script" else 8), []
    if what in ("plan", "narrow", "compare"):
        return {"plan": 0.3 + megabytes / 200, "narrow": 2 + megabytes / 100, "compare": 0.5}[what], []
    if what == "ours":  # opened 0.3 s (less than a process of its own, which took 0.4 to 0.6), measured twice for 0.1 s, warmed up and freed
        return 0.3, [0.6 + megabytes / 2000]
    if what in ("torch", "layout"):
        return 1 + megabytes / 100, [0.5, captured + 0.5, captured + 0.5][what == "layout":]
    if what == "ort":
        if model in CONVOLUTIONS and task.stage == gpu_schedule.OTHER:
            return 0, []  # gpu_run.needless
        return 0.3, [0.4 + megabytes / 1000 + (first if of[2] == "fp16" else 0.2)] * (2 if model in CONVOLUTIONS else 1)
    return 34, [3.5, 3.5]  # torch.compile of two precisions: exports-compile-2026-11-27-h100.json, 17 s the mean of 20; the turns are guesses


def like(path):
    """Task -> seconds, of an earlier result."""
    took, of_name = {}, {}
    for name, _, seconds, turn, waited in json.loads(path.read_text())["timeline"]:
        took[name] = max(0, seconds - turn - waited), [turn / (turns := math.ceil(turn / 5))] * turns if turn else []
        of_name.setdefault(name.split()[0], []).append(took[name])
    means = {name: (mean(before for before, _ in all_of_it), [mean(sum(turns) for _, turns in all_of_it)]) for name, all_of_it in of_name.items()}
    return lambda task: took.get(" ".join(map(str, task.name))) or means.get(task.name[0]) or estimated(task)


class Clock:
    """Tasks begin as in gpu_run.py; the GPU is had in the order of asking, by those who are late when nobody else asks or others have gone first for long enough."""

    def __init__(self, plan, processors, seconds_of):
        self.plan, self.processors, self.seconds_of = plan, processors, seconds_of
        self.now, self.events, self.count = START, [], itertools.count()
        self.asking, self.late, self.busy, self.ended = [], [], False, []

    def at(self, when, function, *given):
        heapq.heappush(self.events, (when, next(self.count), function, given))

    def begin(self):
        running = self.plan.of("running")
        slots = {"cpu": self.processors, **STATIONS}
        for task in running:
            slots[task.kind] -= 1
        compilers = COMPILERS - sum(task.name[0] == "compile" for task in running)
        for kind, free in slots.items():
            while free > 0 and (task := self.plan.ready(kind, lambda task: task.name[0] == "compile" and compilers <= 0)):
                compilers -= task.name[0] == "compile"
                free -= 1
                task.state = "running"
                before, turns = self.seconds_of(task)
                self.at(self.now + before, self.ask, task, turns)

    def ask(self, task, turns):
        if not turns:
            self.end(task)
            return
        late = task.name[0] in BEHIND
        (self.late if late else self.asking).append((task, turns, self.now))
        self.give()
        if late:
            self.at(self.now + PATIENCE, self.give)

    def give(self):
        """A late turn is next when it has let others go first for a while."""
        if self.busy:
            return
        patient = self.late and self.now >= self.late[0][2] + PATIENCE
        queue = self.late if self.late and (patient or not self.asking) else self.asking
        if queue:
            self.busy = True
            task, turns, _ = queue.pop(0)
            self.at(self.now + turns[0], self.leave, task, turns[1:])

    def leave(self, task, turns):
        self.busy = False
        if task.name[0] in BEHIND and self.late:
            self.late[0] = (*self.late[0][:2], self.now)  # the next one's patience begins
            self.at(self.now + PATIENCE, self.give)
        self.ask(task, turns)
        self.give()

    def end(self, task):
        self.plan.end(task, True)
        self.ended.append((self.now, task))

    def run(self, seconds):
        self.begin()
        while self.events and self.events[0][0] <= seconds:
            self.now, _, function, given = heapq.heappop(self.events)
            function(*given)
            self.begin()


def predicted(processors, minutes, seconds_of=estimated):
    args = argparse.Namespace(work=Path("/nowhere"))
    families = [(Family(args, name, batch), ["dynamo", "script"]) for name in MODELS for batch in (1, 32)]
    for family, _ in families:
        family.channels_last = family.name in CONVOLUTIONS
    clock = Clock(gpu_schedule.Schedule(gpu_schedule.tasks(families, ["fp16", "tf32"])), processors, seconds_of)
    clock.run(60 * minutes - min(6 * minutes, 50) - 3)  # what first results take
    rows = [(when, task) for when, task in clock.ended if task.name[0] == "ours"]
    return {"rows": len(rows), "first_row": rows[0][0], "last_row": rows[-1][0], "stages": clock.plan.progress(), "turns": sum(sum(seconds_of(task)[1]) for _, task in clock.ended)}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--processors", type=int, default=13, help="that make models (default: 13, of 16)")
    p.add_argument("--minutes", type=float, default=10)
    p.add_argument("--like", type=Path, metavar="RESULT.json", help="what bench/gpu_speed.py saved before")
    args = p.parse_args()
    found = predicted(args.processors, args.minutes, like(args.like) if args.like else estimated)
    print(f"{found['rows']} of 168 rows, the first at {found['first_row']:.0f} s, the last at {found['last_row']:.0f} s; {found['turns']:.0f} s of the GPU")
    print("\n".join(stage_lines(found["stages"])))


if __name__ == "__main__":
    main()
