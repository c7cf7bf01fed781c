#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the newest results in bench/results/ into the table of README.md, between its bench:begin and bench:end lines."""
import json
import re
import statistics
import subprocess
from pathlib import Path

from gpu_rows import ORT_MODES, TORCH_MODES

TOP = Path(__file__).resolve().parent.parent


def results(name):
    """All of a benchmark, the newest last."""
    return [json.loads(f.read_text()) for f in sorted((TOP / "bench/results").glob(f"{name}-2*.json"))]


def newest(name):
    found = results(name)
    return found[-1] if found else None


def speed(result, precision, aim, without=()):
    isa = ", as on AVX2" if result["benchmark"].endswith("_avx2") else ""
    clock = "processor time" if "_processor" in result["benchmark"] else "time"
    for key, s in result["summary"].items():
        if key.startswith("threads_") and key not in without:
            threads = f"{key[8:]} thread{'' if key == 'threads_1' else 's'}"
            models = len({row["model"] for row in result["rows"]})
            yield (f"{clock} beside ONNX Runtime, {threads}, {models} models, {precision}{isa}",
                   f"geometric mean {s['geomean']:.2f}, worst {s['worst']:.2f} ({s['worst_model']})", aim)


def float32_speed(result):
    """Where processor time was measured later, with one thread, it takes the place of latency."""
    other = newest(result["benchmark"].replace("cpu_speed", "cpu_speed_processor")) if "_processor" not in result["benchmark"] else None
    later = other and other["date"] > result["date"]
    return speed(result, "fp32", "<= 0.70, none above 1.0", other["summary"] if later else ())


def quantised_speed(result):
    return speed(result, "8 bits", "<= 0.80, none above 1.1")


def startup(result):
    summary = result["summary"]
    yield ("start to first output, ResNet-50: ONNX Runtime's load + first run over our whole process",
           f"{summary['first_output_times_less']:.1f} times less", "4 times")
    yield "loading the plan beside import + optimise", f"{summary['plan_times_faster']:.1f} times faster", "10 times"


def memory(result):
    summary = result["summary"]
    yield "peak memory beside weights + arena + 40 MB, worst of five models", f"{summary['worst_above_mb']:+.0f} MB", "<= 0"


def compile_time(result):
    summary = result["summary"]
    yield "`graphc optimize` of ResNet-50", f"{summary['resnet50_s']:.2f} s", "2 s"
    yield "`graphc optimize` of 1,000 branches", f"{summary['parallel_fcn_s']:.2f} s", "2 s"
    yield "growth of that with nodes, 10k to 50k", f"exponent {summary['growth']['10k_to_50k']:.2f}", "near 1"


def host_overhead(result):
    summary = result["summary"]
    yield "host time a step", f"{summary['chain_ns_per_step']:.0f} ns", ""


def gpus_of(result):
    gpus = result.get("gpus") or [result["machine"]["gpu"] if isinstance(result.get("machine"), dict) else result.get("machine")]
    return f"{len(gpus)} x {gpus[0]}" if len(gpus) > 1 else str(gpus[0])


def rank(row):
    return "libtorch_ms" in row, row["devices"]


def init_scaling(rows):
    """Each model where a peer was beside it, else on the most GPUs that it was started on; the newest of equals, as rows are in order."""
    best = {}
    for r in rows:
        if r["model"] not in best or rank(r) >= rank(best[r["model"]]):
            best[r["model"]] = r
    for r in best.values():
        peer = f"; libtorch {r['libtorch_ms'] / 1e3:.1f} s" if "libtorch_ms" in r else ""
        size = f"{r['plan_bytes'] / 1e9:.1f} GB" if r["plan_bytes"] > 1e9 else f"{r['plan_bytes'] / 1e6:.0f} MB"
        yield (f"process start to {r['devices']} ready sessions, {r['model']}, {size}",
               f"{r['ready_ms'] / 1e3:.2f} s; the driver alone {r['floor_ms'] / 1e3:.2f} s{peer}", "1.10 x the driver + 0.25 s")
        yield (f"the same with contexts there: {r['devices']} GPUs, one GPU", f"{r['again_ms']:.0f} ms, {r['again_on_one_ms']:.0f} ms",
               "as one GPU")


def overlap(result):
    """Page-locked memory: what a user who wants copies to be free takes."""
    best = max((row for row in result["rows"] if row["pinned"]), key=lambda row: row["share"])
    peer = f"; PyTorch at best {max(rate for way, rate in result['peer'].items() if 'alone' not in way):,.0f}" if result["peer"] else ""
    yield (f"images a second with copies, {result['model']}, float16, batch {result['batch']}, {best['contexts']} contexts on one "
           f"{gpus_of(result).removeprefix('NVIDIA ')}",
           f"{best['per_s']:,.0f}, {best['share']:.2f} of the computation alone{peer}", "0.97 of it")


def milliseconds(x):
    return f"{x:.2f}" if x >= 0.1 else f"{x:.3f}"


def export_cell(row):
    """Ours and what each peer takes; a peer that was not measured is a dash."""
    if not row:
        return ""
    theirs = (row["torch"], row["ort"])
    return " / ".join([f"**{milliseconds(row['ours'])}**"] + [milliseconds(ms) if ms else "-" for ms in theirs])


def wall_cell(row):
    """Where peers' were measured, too."""
    return export_cell(row["wall"]) if row and row["wall"] and row["wall"]["torch"] else ""


def first_cell(row):
    """Ready, and the first result behind that."""
    return f"{row['ready_ms']:.0f} + {milliseconds(row['first_ms'])}" if row and row.get("ready_ms") else ""


def export_rows(result):
    """(model, batch) -> column -> figures; of two exporters' files the slower."""
    found = {}
    for row in result["rows"]:
        if row.get("device_ms") is None or row["exporter"] == "generated":
            continue
        column = "half" if row.get("half") else row["precision"]
        ours = {"ours": row["device_ms"], "ratio": row["ratio"], "torch": fastest(row["peer"], TORCH_MODES), "ort": fastest(row["ort"], ORT_MODES),
                "wall": {"ours": row["wall_ms"], "torch": row["peer"].get("wall_ms"), "ort": row["ort"].get("wall_ms")} if "wall_ms" in row else None} | {k: row[k] for k in ("ready_ms", "first_ms") if k in row}
        columns = found.setdefault((row["model"], row["batch"]), {})
        if column not in columns or columns[column]["ours"] < ours["ours"]:
            columns[column] = ours
    return found


def exports(result):
    """A table of its own: a row for each model and batch, columns as far as they were measured."""
    found = export_rows(result)
    ratios = [row["ratio"] for columns in found.values() for row in columns.values() if row["ratio"]]
    beside = f" Beside the better of both: geometric mean {statistics.geometric_mean(ratios):.2f}, largest {max(ratios):.2f} of {len(ratios)} figures." if ratios else ""
    yield (f"What PyTorch exports, on one {gpus_of(result).removeprefix('NVIDIA ')}, milliseconds of device time a run: **ours** / PyTorch's CUDA graph{how_compiled(result)} / "
           f"ONNX Runtime's CUDA provider, {result.get('ort_how', 'at its best')} ({result['date']}, PyTorch {result['versions']['pytorch']}, ONNX Runtime {result['versions']['onnxruntime']})."
           + beside + (f" {result['note']}" if "note" in result else "") + not_reached(result))
    yield ""
    columns = [column for column in EXPORT_COLUMNS if any(column[2](row.get(column[1])) for row in found.values())]
    yield "| model, batch | " + " | ".join(title for title, _, _ in columns) + " |"
    yield "|---" * (len(columns) + 1) + "|"
    for (name, batch), row in found.items():
        yield f"| {name}, {batch} | " + " | ".join(cell(row.get(key)) for _, key, cell in columns) + " |"


def how_compiled(result):
    """torch.compile's figure is in the same column, where it is less."""
    modes = {"compile": "default", "compile_max": result.get("compile_max")}
    counted = [f"{mode} for {n}" for key, mode in modes.items() if (n := len({(r["model"], r["batch"], r["precision"]) for r in result["rows"] if r.get("peer", {}).get(key)}))]
    return f" or torch.compile's module in one ({', '.join(counted)})" if counted and "note" not in result else ""


def not_reached(result):
    """How many of the rows that were wanted have no figure of ours."""
    n = sum(row.get("device_ms") is None for row in result["rows"])
    return f" {n} of {len(result['rows'])} rows were not reached." if n else ""


def fastest(row, modes):
    return min((row[mode] for mode in modes if row.get(mode)), default=None)


EXPORT_COLUMNS = (("float16", "fp16", export_cell), ("exported in half", "half", export_cell), ("TF32", "tf32", export_cell), ("host to host, float16", "fp16", wall_cell),
                  ("ready + first result, float16", "fp16", first_cell))


def cpu_exports_speed(result):
    return speed(result, "exports of full size, fp32", "<= 0.70, none above 1.0")


def cpu_exports(result):
    """A row for each model, a column for each exporter and number of threads."""
    found = {}
    for row in result["rows"]:
        name, _, batch, exporter = row["model"].split(".")
        found[name, batch[1:], exporter, row["threads"]] = row
    columns = list(dict.fromkeys((exporter, threads) for _, _, exporter, threads in found))
    machine = result["machine"]
    yield (f"What PyTorch exports, on CPUs ({machine['cpu']}, {', '.join(machine['isa'])}), milliseconds: **ours** / ONNX Runtime ({result['date'][:10]}, "
           f"ONNX Runtime {result['versions']['onnxruntime']}):")
    yield ""
    yield "| model, batch | " + " | ".join(f"{exporter}, {threads} thread{'s' if threads > 1 else ''}" for exporter, threads in columns) + " |"
    yield "|---" * (len(columns) + 1) + "|"
    for name, batch in dict.fromkeys(key[:2] for key in found):
        rows = [found.get((name, batch, *column)) for column in columns]
        yield f"| {name}, {batch} | " + " | ".join(f"**{milliseconds(r['ours_ms'])}** / {milliseconds(r['onnxruntime_ms'])}" if r else "-" for r in rows) + " |"


def main():
    lines, notes = ["| measured | result | aim |", "|---|---|---|"], set()
    for name, rows in (("cpu_speed_processor", float32_speed), ("cpu_speed_processor_avx2", float32_speed), ("cpu_speed", float32_speed),
                       ("cpu_speed_avx2", float32_speed), ("cpu_exports", cpu_exports_speed), ("quantised_speed", quantised_speed),
                       ("quantised_speed_avx2", quantised_speed), ("startup", startup), ("memory", memory), ("compile_time", compile_time),
                       ("host_overhead", host_overhead)):
        result = newest(name)
        if result:
            lines += [f"| {what} | {found} | {aim} |" for what, found, aim in rows(result)]
            machine, versions = result["machine"], result["versions"]
            notes.add(f"{result['date'][:10]}: {machine['cores']} cores of {machine['cpu']}, {machine['memory_gib']:.0f} GiB, "
                      f"{machine['system']}, oneDNN {versions['onednn']}, ONNX Runtime {versions.get('onnxruntime', '-')}.")
    starts = results("init_scaling")
    if starts:
        rows = [row for result in starts for row in result["rows"]]
        lines += [f"| {what} | {found} | {aim} |" for what, found, aim in init_scaling(rows)]
        notes.add(f"GPUs of the start-up figures: {', '.join(gpus_of(result) for result in starts)}.")
    result = newest("overlap")
    if result:
        lines += [f"| {what} | {found} | {aim} |" for what, found, aim in overlap(result)]
    result = newest("gpu_exports")
    if result:
        lines += ["", *exports(result)]
    result = newest("cpu_exports")
    if result:
        lines += ["", *cpu_exports(result)]
    text = "\n".join([*lines, "", *sorted(notes)]) if notes else "Nothing measured yet."
    readme = TOP / "README.md"
    old = readme.read_text()
    new = re.sub(r"(<!-- bench:begin.*?-->\n).*?(<!-- bench:end -->)", lambda m: f"{m[1]}{text}\n{m[2]}", old, flags=re.S)
    readme.write_text(new)
    subprocess.run([TOP / "scripts/wrap.pl", readme], check=True)


if __name__ == "__main__":
    main()
