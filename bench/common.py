# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks share: models, running both sides, figures of the machine, results as JSON and as tables.

Every benchmark writes bench/results/NAME-DATE.json with the machine, the versions and all figures, and prints a table. `build` is the
build directory of libgraphrt; models that have to be generated go to build/bench/.
"""
import argparse
import datetime
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from peers import older_cpu

TOP = Path(__file__).resolve().parent.parent

# What grt-models writes for the benchmarks: name -> arguments.
GENERATED = {
    "resnet50": ["resnet50"],
    "mobilenet_v2": ["mobilenet_v2"],
    "densenet121": ["densenet121"],
    "vit_b16": ["vit_b16"],
    "bert": ["bert"],
    "parallel_fcn": ["parallel_fcn"],
    "chain_1k": ["chain", "--nodes", "1000"],
    "chain_10k": ["chain", "--nodes", "10000"],
    "chain_50k": ["chain", "--nodes", "50000"],
}


def parser(doc):
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", type=Path, default=TOP / "build", help="build directory (default: build)")
    p.add_argument("--no-save", action="store_true", help="print the table, write no JSON")
    return p


def tool(build, name):
    """A program of a build directory or of a bundle (`make bundle`), which holds all of them in bin/."""
    for path in (build / name, build / "bin" / Path(name).name):
        if path.is_file():
            return path
    raise SystemExit(f"{name} is not in {build}: build it first (make, or make bundle)")


def program(build, name):
    """(path, environment) of a program itself: in a build directory its name is a script of libtool's, which takes milliseconds to start it."""
    path = build / ".libs" / name
    if not path.is_file():
        return tool(build, name), None
    return path, {**os.environ, "LD_LIBRARY_PATH": str(path.parent.resolve())}


def note(text):
    """Progress, on a terminal only."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def run(command, **kwargs):
    """Standard output of a command that must succeed."""
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kwargs)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stderr.strip()[-2000:]}")
    return done.stdout


def gpus():
    """"NAME, DRIVER" of each GPU; none without NVIDIA's driver."""
    try:
        return run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]).strip().splitlines()
    except (OSError, RuntimeError):
        return []


def gpu():
    """The first one, for a result's `machine`."""
    name, driver = (part.strip() for part in gpus()[0].split(","))
    return {"gpu": name, "driver": driver}


def seconds(command, env=None):
    """Wall time of a command, from before it is started until it has ended."""
    start = time.perf_counter()
    run(command, env=env)
    return time.perf_counter() - start


def generated(build, name):
    """Path of a generated model, written on first use."""
    path = build / "bench" / f"{name}.onnx"
    if not path.exists():
        note(f"generating {name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        run([build / "models/generate/grt-models", *GENERATED[name], "-o", path])
    return path


def exported(build):
    """Paths of the exported models, if their archive is there."""
    data = Path(os.environ.get("GRAPHRT_TEST_DATA", build / "data"))
    subprocess.run([TOP / "tests/conformance/unpack.sh", data], stderr=subprocess.DEVNULL, check=True)
    return sorted(data.glob("given/*/model.onnx"))


def title(path):
    return f"exported-{path.parent.name}" if path.name == "model.onnx" else path.stem


def plan(build, path):
    """The plan of a model, made anew if the model or graphc is newer."""
    grt = build / "bench" / f"{title(path)}.grt"
    newest = max(path.stat().st_mtime, (build / "graphc").stat().st_mtime)
    libs = list((build / ".libs").glob("libgraphrt.so.*.*"))
    newest = max([newest, *(lib.stat().st_mtime for lib in libs)])
    if not grt.exists() or grt.stat().st_mtime < newest:
        note(f"optimising {title(path)}")
        grt.parent.mkdir(parents=True, exist_ok=True)
        run([build / "graphc", "optimize", path, "-o", grt])
    return grt


def add_isa(p):
    p.add_argument("--isa", choices=older_cpu.LEVELS,
                   help="both sides as on a processor that has no more (GRAPHRT_CPU_ISA; bench/peers/older_cpu.py); default: all that this one has")


def add_turns(p, rounds=3, seconds=1.0, limit=15.0):
    """Options of what measures both sides in turns."""
    p.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="thread counts (default: 1 2)")
    p.add_argument("--rounds", type=int, default=rounds, help=f"turns of each side (default {rounds})")
    p.add_argument("--seconds", type=float, default=seconds, help=f"measured time of a turn (default {seconds:g})")
    if limit:
        p.add_argument("--limit", type=float, default=limit, help=f"seconds for a model with one number of threads, after which no further round begins (default {limit:g})")
    add_isa(p)


def environments(options):
    """Of processes of ours and of ONNX Runtime's, as --isa says."""
    if not options.isa:
        return None, None
    return {**os.environ, "GRAPHRT_CPU_ISA": options.isa}, older_cpu.environment(options.build / "bench", options.isa)


def on(processors):
    """What begins a command that is to have these processors only; nothing if it may have all."""
    return ["taskset", "-c", ",".join(map(str, processors))] if processors else []


def ort_bench(paths, inputs, *options, env=None, processors=None):
    """Peer figures of ONNX models; random inputs are left in `inputs` as MODEL.INPUT.npy."""
    return json.loads(run([*on(processors), sys.executable, TOP / "bench/peers/ort_bench.py", "--inputs-dir", inputs, *options, *paths], env=env))


def grt_bench(build, path, inputs, *options, env=None, processors=None):
    """Our figures of one plan or model, with the inputs that the peer used."""
    given = []
    for file in sorted(inputs.glob("*.npy")):
        given += ["--input", f"{file.name.split('.')[-2]}={file}"]
    return json.loads(run([*on(processors), build / "graphrun", "bench", path, "--json", *given, *options], env=env))[0]


def generated_beside(options, name, theirs, ours):
    """A generated model's plan, and the peer's and our figures of it; `theirs` and `ours`: options of the two."""
    path = generated(options.build, name)
    made = plan(options.build, path)
    note(name)
    with tempfile.TemporaryDirectory() as inputs:
        peer = ort_bench([path], inputs, *theirs)[0]
        return made, peer, grt_bench(options.build, made, Path(inputs), *ours)


def geomean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def summary_of_ratios(rows, thread_counts):
    """Of rows with model, threads and ratio."""
    summary = {"text": []}
    for threads in thread_counts:
        ratios = {r["model"]: r["ratio"] for r in rows if r["threads"] == threads}
        if ratios:
            worst, mean = max(ratios, key=ratios.get), geomean(ratios.values())
            summary[f"threads_{threads}"] = {"geomean": mean, "worst": ratios[worst], "worst_model": worst, "models": len(ratios)}
            summary["text"].append(f"{threads} threads: geometric mean of {len(ratios)} ratios {mean:.3f}, worst {ratios[worst]:.3f} ({worst})")
    return summary


class Rows:
    """Rows of a result, printed as they are measured and kept in the build directory: with --resume a run that was cut off goes on where it ended."""

    def __init__(self, options, name, columns, **settings):
        self.path, self.columns = options.build / "bench" / f"{name}.rows.json", columns
        self.key = json.loads(json.dumps({"versions": versions(options.build), **settings}, default=str))
        self.rows = []
        if options.resume and self.path.exists():
            kept = json.loads(self.path.read_text())
            if kept["key"] == self.key:
                self.rows = kept["rows"]
            else:
                print("other versions or settings were measured before: nothing to resume")
        for row in self.rows:
            self.show(row)

    def has(self, **what):
        return any(all(row.get(k) == v for k, v in what.items()) for row in self.rows)

    def add(self, row):
        self.rows.append(row)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps({"key": self.key, "rows": self.rows}))
        self.show(row)

    def show(self, row):
        note("")
        print("  ".join(f"{head if isinstance(head, str) else head[0]} {format_cell(row.get(k), head)}" for k, head in self.columns.items()), flush=True)


def rounds_within(options):
    """Numbers of rounds, as many as --rounds says and --limit leaves time for; one at least."""
    start = time.monotonic()
    for done in range(options.rounds):
        if done and (time.monotonic() - start) * (done + 1) / done > options.limit:
            return
        yield done


def warm(path):
    """Bring a file into the page cache."""
    with open(path, "rb", buffering=0) as file:
        while file.read(1 << 24):
            pass


def machine():
    cpu, flags = platform.machine(), ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            cpu = value.strip()
        elif key.strip() == "flags":
            flags = value
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    release = platform.freedesktop_os_release().get("PRETTY_NAME", "")
    return {
        "cpu": cpu, "cores": len(os.sched_getaffinity(0)), "memory_gib": round(pages / 2**30, 1), "system": release,
        "kernel": platform.release(), "isa": [f for f in ("avx2", "avx512f", "avx512_vnni", "amx_tile") if f" {f} " in f"{flags} "],
    }


def versions(build):
    def of(command):
        try:
            return run(command).strip().splitlines()[0]
        except (RuntimeError, OSError, IndexError):
            return "unknown"

    found = {
        "libgraphrt": of([build / "graphrun", "--version"]), "commit": of(["git", "-C", TOP, "rev-parse", "--short", "HEAD"]),
        "onednn": of(["sh", "-c", "dpkg-query -W -f '${Version}' libdnnl-dev"]), "python": platform.python_version(),
    }
    try:
        from importlib.metadata import version
        found["onnxruntime"] = version("onnxruntime")
    except ImportError:
        pass
    return found


def report(options, name, summary, rows, columns, **more):
    """Print a table of `rows` (dicts; columns: key -> heading or (heading, format)) and the summary; write the JSON."""
    note("")
    heads = [c if isinstance(c, str) else c[0] for c in columns.values()]
    lines = [[format_cell(row.get(key), c) for key, c in columns.items()] for row in rows]
    widths = [max(map(len, column)) for column in zip(heads, *lines)]
    for line in [heads, ["-" * w for w in widths], *lines]:
        print("  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths))).rstrip())
    for line in summary.get("text", []):
        print(line)
    if options.no_save:
        return
    now = datetime.datetime.now(datetime.timezone.utc)
    path = TOP / "bench" / "results" / f"{name}-{now:%Y-%m-%d}.json"
    path.parent.mkdir(exist_ok=True)
    result = {"benchmark": name, "date": f"{now:%Y-%m-%d %H:%M} UTC", "machine": machine(), "versions": versions(options.build),
              "summary": summary, "rows": rows, **more}
    path.write_text(json.dumps(result, indent=1) + "\n")
    print(f"written to {path.relative_to(TOP)}")


def format_cell(value, column):
    if value is None:
        return "-"
    if isinstance(column, str):
        return str(value)
    return format(value, column[1])
