#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which plans move bytes that a kernel could have read in place: a line for each model, those that move most first.

    moved_bytes.py MODEL... [--target cuda] [--build build] [--steps]

MODEL: a .onnx file, or a directory with model.onnx. Of each: steps that are no views; KiB of activations that they read and write (constants are not counted,
dims that inputs decide are taken as 1); the share of these bytes in steps that only move elements ("moves"), and in element-wise steps beside other such steps
("chains"); the ops of both by share. --steps: the largest of these steps. A plan for a GPU needs the module of its kernels, not a GPU.
"""
import argparse
import collections
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

VIEWS = {"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"}
CUTS = {"Slice", "Gather", "GatherND", "GatherElements", "Split", "PointwiseParts"}
MOVES = {"Transpose", "Slice", "Concat", "Gather", "Expand", "Tile", "Pad", "Roll", "Split", "GatherElements", "GatherND", "ScatterND", "ScatterElements",
         "WriteSlice", "DepthToSpace", "SpaceToDepth"}
ELEMENTS = {"Pointwise", "PointwiseParts", "PointwiseConcat", "Add", "Mul", "Sub", "Div", "Pow", "Min", "Max", "Clip", "Where", "Neg", "Abs", "Reciprocal", "Sqrt",
            "Exp", "Log", "Erf", "Sin", "Cos", "Tanh", "Sigmoid", "Softplus", "Relu", "Gelu", "Swish", "HardSwish"}
SIZES = {"double": 8, "int64": 8, "float32": 4, "int32": 4, "float16": 2, "bfloat16": 2, "int8": 1, "uint8": 1, "bool": 1}
EDGE = re.compile(r'\s*(\w+) -> (\w+) \[label="(.*?)"(?: tooltip="(.*?)")?\];')
NODE = re.compile(r'\s*(\w+) \[(?:shape=\w+ )?label="(.*?)"(?: tooltip="(.*?)")?\];')


def dims_of(label):
    found = re.search(r"\[(.*)\]$", label)
    return [d for d in found[1].split("x") if d] if found else []


def bytes_of(label):
    """Of a tensor as `graphc inspect --dot` labels it: float32[2x8xn]."""
    return SIZES.get(label.split("[")[0], 0) * math.prod(int(d) for d in dims_of(label) if d.isdigit())


class Plan:
    """The steps of a plan, out of its graph."""

    def __init__(self, dot):
        self.ops, self.names = {}, {}
        self.reads, self.writes, self.readers = (collections.defaultdict(kind) for kind in (list, set, set))
        for line in dot.splitlines():
            if edge := EDGE.match(line):
                self.reads[edge[2]].append((edge[1], edge[3]))
                self.writes[edge[1]].add((edge[3], edge[4]))
                self.readers[edge[1]].add(edge[2])
            elif node := NODE.match(line):
                self.ops[node[1]], self.names[node[1]] = node[2].split()[0], node[3] or ""
        self.steps = [s for s in self.ops if s.startswith("step") and not self.is_view(s)]

    def is_view(self, step):
        """Parts that follow each other, as Split makes along the first dim, are views too."""
        if self.ops[step] != "Split" or not self.reads[step]:
            return self.ops[step] in VIEWS
        whole = dims_of(self.reads[step][0][1])
        parts = [dims_of(label) for label, _ in self.writes[step]]
        axis = next((k for k, size in enumerate(whole) if any(p[k] != size for p in parts)), 0)
        return all(d == "1" for d in whole[:axis])

    def bytes(self, step):
        """What a step cuts out of a value is read, not all of it."""
        written = sum(bytes_of(label) for label, _ in self.writes[step])
        read = [bytes_of(label) for _, label in self.reads[step]]
        return written + sum(min(n, written) if self.ops[step] in CUTS and written else n for n in read)

    def neighbours(self, step):
        """Steps on both sides, past views."""
        found = set()
        for around in (lambda s: {other for other, _ in self.reads[s]}, lambda s: self.readers[s]):
            todo, seen = [step], set()
            while todo:
                for other in {o for o in around(todo.pop()) if o.startswith("step")} - seen:
                    seen.add(other)
                    (todo.append if self.is_view(other) else found.add)(other)
        return found

    def wasted(self):
        """step -> "moves" or "chains"."""
        kinds = {}
        for s in self.steps:
            if self.ops[s] in MOVES:
                kinds[s] = "moves"
            elif self.ops[s] in ELEMENTS and any(self.ops[o] in ELEMENTS for o in self.neighbours(s)):
                kinds[s] = "chains"
        return kinds

    def shares(self):
        """Bytes in all; of "moves" and "chains"; of their ops."""
        kinds, ops = collections.Counter(), collections.Counter()
        for s, kind in self.wasted().items():
            kinds[kind] += self.bytes(s)
            ops[self.ops[s]] += self.bytes(s)
        return sum(self.bytes(s) for s in self.steps), kinds, ops


def plan_of(graphc, model, target):
    """The plan, or None and why there is none."""
    env = {**os.environ, "GRAPHRT_ALGO_CACHE": "off"}
    with tempfile.TemporaryDirectory() as scratch:
        plan = Path(scratch) / "plan.grt"
        made = subprocess.run([graphc, "optimize", model, "--target", target, "-o", plan], capture_output=True, text=True, env=env)
        if made.returncode:
            return None, made.stderr.strip().splitlines()[-1] if made.stderr.strip() else "refused"
        return Plan(subprocess.run([graphc, "inspect", plan, "--dot"], capture_output=True, text=True, env=env, check=True).stdout), None


def print_plan(name, plan, steps):
    total, kinds, ops = plan.shares()
    total = total or 1
    print(f"{name:44} {len(plan.steps):5} {total / 1024:9.0f} {kinds['moves'] / total:6.1%} {kinds['chains'] / total:6.1%}  "
          + " ".join(f"{op} {n / total:.1%}" for op, n in ops.most_common(5)))
    for s in sorted(plan.wasted(), key=lambda s: -plan.bytes(s))[:8 if steps else 0]:
        print(f"    {plan.ops[s]:16} {plan.bytes(s) / total:6.1%}  " + ", ".join(label for _, label in plan.reads[s]) + " -> "
              + ", ".join(label for label, _ in plan.writes[s]) + f"  {plan.names[s]}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("models", nargs="+", type=Path)
    p.add_argument("--target", default="cuda")
    p.add_argument("--build", type=Path, default=Path("build"))
    p.add_argument("--steps", action="store_true")
    a = p.parse_args()
    plans, refused = [], False
    for model in a.models:
        plan, why = plan_of(a.build / "graphc", model / "model.onnx" if model.is_dir() else model, a.target)
        if plan:
            plans.append((model.name, plan))
        else:
            refused = True
            print(f"{model}: {why}", file=sys.stderr)
    print(f"{'model':44} {'steps':>5} {'KiB':>9} {'moves':>6} {'chains':>6}")
    for name, plan in sorted(plans, key=lambda row: -row[1].shares()[1].total() / (row[1].shares()[0] or 1)):
        print_plan(name, plan, a.steps)
    return int(refused)


if __name__ == "__main__":
    sys.exit(main())
