#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two builds beside each other, taking turns: start-up, peak memory, host time of a run, processor time of a run.

Of each figure the smallest of all rounds is compared, which other work on the machine disturbs least. Start-up is processor time, of user
and kernel, of `graphrun PLAN`, and peak its resident memory, by GNU time; processor time of a run is what more runs add to it. Each build
runs the plan that it made. The directories are those of installations: a build tree's programs are scripts. Claim: what did not mean to
change speed makes nothing worse by more than 2 %.
"""
import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path

FIGURES = {"start_cpu_ms": "start-up, CPU ms", "peak_mb": "peak MB", "host_us": "host us a run", "run_cpu_ms": "run, CPU ms"}


def usage_of(command):
    """CPU milliseconds that the kernel counted for the process, and its output."""
    process = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[0]} ended with status {process.returncode}")
    return 1e3 * (usage.ru_utime + usage.ru_stime), output


def bench(binaries, plan, repeat):
    cpu_ms, output = usage_of([binaries / "graphrun", "bench", plan, "--threads", 1, "--warmup", 1, "--repeat", repeat, "--json"])
    return cpu_ms, json.loads(output)[0]


def peak_of(command):
    """Resident KiB of the process, and of nothing that it was before: a child of a small program, not of this one."""
    return int(subprocess.run(["time", "-f", "%M", *command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE).stderr.split()[-1])


def measure(binaries, plan, repeat):
    start, _ = usage_of([binaries / "graphrun", plan, "--threads", 1])
    few, _ = bench(binaries, plan, 1)
    many, report = bench(binaries, plan, 1 + repeat)
    return {"start_cpu_ms": start, "peak_mb": peak_of([binaries / "graphrun", plan, "--threads", "1"]) * 1024 / 1e6, "host_us": report["host_us"], "run_cpu_ms": (many - few) / repeat}


def pair(path, options, directory):
    sides = {"before": options.before, "after": options.after}
    plans = {side: directory / f"{path.stem}.{side}.grt" for side in sides}
    for side, binaries in sides.items():
        subprocess.run([binaries / "graphc", "optimize", path, "-o", plans[side]], check=True, stdout=subprocess.DEVNULL)
    same = plans["before"].read_bytes() == plans["after"].read_bytes()
    latency = bench(options.before, plans["before"], 10)[1]["latency_ms"]["min"]
    repeat = max(10, int(1e3 * options.seconds / latency))
    best = {side: {} for side in sides}
    for turn in range(options.rounds):
        for side in sorted(sides, reverse=turn % 2 == 1):
            for figure, value in measure(sides[side], plans[side], repeat).items():
                best[side][figure] = min(value, best[side].get(figure, value))
    for plan in plans.values():
        plan.unlink()
    return same, best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="directory with graphc and graphrun")
    parser.add_argument("after", type=Path, help="likewise")
    parser.add_argument("models", type=Path, nargs="+", help="ONNX files")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seconds", type=float, default=1, help="of runs in a round (default: 1)")
    options = parser.parse_args()
    print("| model | " + " | ".join(f"{text}: before | after | change" for text in FIGURES.values()) + " | plan |")
    print("|---" * (3 * len(FIGURES) + 2) + "|")
    with tempfile.TemporaryDirectory() as directory:
        for path in options.models:
            same, best = pair(path, options, Path(directory))
            cells = [f"{best['before'][f]:.4g} | {best['after'][f]:.4g} | {100 * (best['after'][f] / best['before'][f] - 1):+.1f} %"
                     for f in FIGURES]
            print(f"| {path.stem} | " + " | ".join(cells) + f" | {'same bytes' if same else 'other bytes'} |", flush=True)


if __name__ == "__main__":
    main()
