#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From a device's opening to a plan's first result, by phase: smallest and median of new processes, caches warm.

    first_result.py [--device cuda:0[,1]] [--rounds N] [--beside OTHER/graphrun] PLAN.grt...

`behind`: from when the last device was open until the first run has ended; opening is the driver's own time. Phases overlap, so they do not add up.
With --beside each round runs a second graphrun, with a cache of its own, so that two builds are measured in turns. The first round fills caches and is not
counted. Run by hand: needs a GPU.
"""
import json
import os
import statistics
import tempfile
from pathlib import Path

import common

PHASES = ("start driver", "open device", "weights", "create kernels", "prepare", "load code", "capture", "run")
COLUMNS = {"plan": "plan", "graphrun": "graphrun", "behind_ms": "behind ms", "first_run_ms": "first run", **{phase: phase for phase in PHASES}}


def start(graphrun, plan, device, cache):
    """One new process: milliseconds by phase, the longest of all devices."""
    command = [graphrun, plan, "--device", device, "--explain-load", "--json"]
    said = json.loads(common.run(command, env={**os.environ, "XDG_CACHE_HOME": str(cache)}))
    phases, opened = {}, 0.0
    for one in said["load"]["devices"]:
        for phase in one["phases"]:
            name, took = phase["name"], phase["end_ms"] - phase["begin_ms"]
            phases[name] = max(took, phases.get(name, 0.0))
            if name == "open device":
                opened = max(opened, phase["end_ms"])
    return {"ready_ms": said["load"]["total_ms"], "behind_ms": said["load"]["total_ms"] - opened + said["first_run_ms"], "first_run_ms": said["first_run_ms"], **phases}


def two(values):
    return f"{min(values):.1f} / {statistics.median(values):.1f}" if values else None


def main():
    parser = common.parser(__doc__)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--beside", type=Path, metavar="GRAPHRUN", help="another build's, measured in turns")
    parser.add_argument("plans", nargs="+", type=Path, metavar="PLAN.grt")
    options = parser.parse_args()
    sides = [common.tool(options.build, "graphrun")] + ([options.beside] if options.beside else [])
    rows = []
    with tempfile.TemporaryDirectory() as caches:
        for plan in options.plans:
            runs = {side: [] for side in sides}
            for turn in range(options.rounds + 1):
                for number, side in enumerate(sides):
                    took = start(side, plan, options.device, Path(caches) / str(number))
                    if turn:
                        runs[side].append(took)
            for side, all_of_it in runs.items():
                rows.append({"plan": plan.stem, "graphrun": str(side), "runs": all_of_it,
                             **{key: two([r[key] for r in all_of_it if key in r]) for key in COLUMNS if key not in ("plan", "graphrun")}})
    common.report(options, "first_result", {"device": options.device}, rows, COLUMNS, rounds=options.rounds)


if __name__ == "__main__":
    main()
