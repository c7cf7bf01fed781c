# SPDX-License-Identifier: Apache-2.0
"""The tasks of bench/gpu_speed.py: what needs what, what goes first, which files nobody needs any more. It starts nothing and knows no clock, so that tests and gpu_predict.py run it, too.

A task's kind says who runs it: "cpu", a child of its family's process (gpu_family.py), as many at a time as there are processors for it; "ours", "torch" and "ort", processes that measure
(gpu_stations.py). Stages are done in their order as far as there is work: whatever the time is, the most telling rows are there first.
"""
from dataclasses import dataclass, field

STAGES = ("one exporter's float32 files, smallest batch", "larger batches", "the other exporter", "exports in half", "torch.compile", "PyTorch's other layout of convolutions",
          "torch.compile with more trying")
FIRST, LARGER, OTHER, HALF, COMPILE, LAYOUT, COMPILE_MAX = range(len(STAGES))
QUICK = "script"  # the exporter that takes less time, so that something is measured early
DEPTHS = {"compare": 0, "plan": 0, "narrow": 0, "export": 1, "make": 2}  # what is nearest to a figure goes first


@dataclass
class Task:
    """`needs`: names of tasks that must be done; `behind`: that must be over, in whichever way. `uses`: files.
    `problem`: where its reason goes if it fails (Rows.take's what and key, and the word)."""
    name: tuple
    kind: str
    stage: int
    position: int
    needs: tuple = ()
    behind: tuple = ()
    uses: tuple = ()
    problem: tuple = None
    state: str = "waiting"
    found: dict = field(default_factory=dict)

    def rank(self):
        return self.stage, DEPTHS.get(self.name[0], 0), self.position

    def over(self):
        return self.state in ("done", "failed")


class Schedule:
    def __init__(self, tasks):
        self.tasks = {}
        for task in tasks:
            self.add(task)

    def add(self, task):
        self.tasks[task.name] = task

    def of(self, *states):
        return [task for task in self.tasks.values() if task.state in states]

    def ready(self, kind, but=lambda task: False):
        """The first in order that could begin; None without one. Who measures is a stage ahead of the others who do, at the most, as they have one GPU."""
        could = [task for task in self.of("waiting") if (task.kind == kind or kind != "cpu" != task.kind) and self.may_begin(task)]
        found = [task for task in could if task.kind == kind and not but(task)]
        if kind != "cpu" and found:
            lowest = min(task.stage for task in [*could, *self.of("running")] if task.kind != "cpu")
            found = [task for task in found if task.stage <= lowest + 1]
        return min(found, key=Task.rank, default=None)

    def may_begin(self, task):
        if task.stage == LAYOUT and any(other.stage < LAYOUT for other in self.of("waiting", "running")):
            return False  # it is the faster one for few models
        return all(self.tasks[name].state == "done" for name in task.needs) and all(self.tasks[name].over() for name in task.behind if name in self.tasks)

    def end(self, task, well, found=None):
        """What needs a task that failed fails with it, silently: the reason has been told."""
        task.state, task.found = "done" if well else "failed", found or {}
        if well:
            return
        if task.name[0] == "export":
            self.promote(task)
        for other in self.tasks.values():
            if other.state == "waiting" and task.name in other.needs:
                self.end(other, False)

    def promote(self, failed):
        """The other exporter takes the place of one that failed."""
        _, model, batch, exporter, half = failed.name
        for task in self.tasks.values():
            if not half and task.state == "waiting" and task.name[1:3] == (model, batch) and task.stage == OTHER:
                task.stage = failed.stage

    def progress(self):
        """Stage -> how many of its tasks are done, how many failed, and how many there are."""
        found = {}
        for task in sorted(self.tasks.values(), key=Task.rank):
            row = found.setdefault(STAGES[task.stage], {"done": 0, "failed": 0, "tasks": 0})
            row["tasks"] += 1
            if task.over():
                row[task.state] += 1
        return found

    def unused(self, task):
        """Files of a task that is over, which no other will use."""
        return [path for path in task.uses if not any(path in other.uses for other in self.tasks.values() if not other.over())]


def quick_of(exporters):
    return QUICK if QUICK in exporters else exporters[0]


def family_tasks(family, position, exporters, precisions, stage, half=True, peers=True, ort=True, compiled=True):
    """Of a model at a batch. `family` knows its name, batch and files (gpu_words.Family)."""
    of, made = (family.name, family.batch), ("make", family.name, family.batch)
    any_row = [*of, None, None, None]
    generated = exporters == ["generated"]
    yield Task(made, "cpu", stage, position, problem=("row", any_row, "problem"))
    torch = ("torch", *of)
    if generated and peers:
        yield Task(torch, "cpu", stage, position, (made,), problem=("row", any_row, "peer_problem"))
    elif not generated:  # its float32 results are what ours are compared with; one of ours goes first, as it takes less
        first = tuple(("ours", *of, quick_of(exporters), False, precision) for precision in precisions[:1])
        yield Task(torch, "torch", stage, position, (made,), first, uses=(family.expected,), problem=("row", any_row, "peer_problem"))
    if peers and family.channels_last:
        yield Task(("layout", *of), "torch", LAYOUT, position, (made,), (torch,), problem=("row", any_row, "peer_problem"))
    quick = quick_of(exporters)
    for exporter in sorted(exporters, key=lambda name: name != quick):
        yield from file_tasks(family, position, exporter, False, precisions, stage if exporter == quick else OTHER, ort and not generated)
    if half and not generated:
        for exporter in exporters:
            yield from file_tasks(family, position, exporter, True, ["fp16"], HALF, False)
    if compiled and not generated:
        yield Task(("compile", *of), "cpu", COMPILE, position, (made,), (torch,), problem=("row", any_row, "compile_problem"))


def file_tasks(family, position, exporter, half, precisions, stage, ort):
    """Of an exporter's file: the export, a plan for each precision, its times, and ONNX Runtime's."""
    of = family.name, family.batch, exporter, half
    made, export, torch, path = ("make", *of[:2]), ("export", *of), ("torch", *of[:2]), family.path(exporter, half)
    if exporter == "generated":
        export = made
    else:
        yield Task(export, "cpu", stage, position, (made,), uses=(path, family.inputs), problem=("row", [*of, None], "problem"))
    for precision in precisions:
        if not half and precision == "fp16" and family.name.endswith("_step"):
            continue  # see gpu_rows.wanted
        key = (*of, precision)
        plan, ours = ("plan", *key), ("ours", *key)
        yield Task(plan, "cpu", stage, position, (export,), uses=(path, family.inputs), problem=("row", list(key), "problem"))
        yield Task(ours, "ours", stage, position, (plan,), uses=(family.inputs_of(half),), problem=("row", list(key), "problem"))
        yield Task(("compare", *key), "cpu", stage, position, (ours,), (torch,), uses=(family.expected, family.results(*key[2:])))
    if ort:
        narrow = ("narrow", *of)
        yield Task(narrow, "cpu", stage, position, (export,), uses=(path,), problem=("row", [*of[:2], None, None, None], "ort_problem"))
        for precision in precisions:
            uses = (family.narrowed(path) if precision == "fp16" else path, family.inputs, family.expected)
            yield Task(("ort", *of, precision), "ort", stage, position, (narrow,), (torch,), uses=uses, problem=("ort", [*of[:2], precision], "error"))


def tasks(families, precisions, **choices):
    """`families`: (Family, exporters) of each model at each batch, the models in their order and for each its batches."""
    seen = {}
    for family, exporters in families:
        position = seen.setdefault(family.name, len(seen))
        smallest = family.batch == min(other.batch for other, _ in families if other.name == family.name)
        step = family.name.endswith("_step") and "fp16" in precisions
        options = choices | {"half": "fp16" in precisions and (choices.get("half", True) or step)}
        yield from family_tasks(family, position, exporters, precisions, FIRST if smallest else LARGER, **options)
