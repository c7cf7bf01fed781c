#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPU speed beside ONNX Runtime: the same models, inputs and thread counts, fp32, each side in fresh processes that take turns.

The exported models of ../shared/data (if there) and ResNet-50, MobileNetV2, DenseNet-121, ViT-B/16 and BERT-base sized ones from
grt-models; with --exports, models that are exported on the spot by both of PyTorch's exporters (bench/exports.py): about ten minutes for the usual ones, and
as long again to export them the first time. Rows are printed as they are measured; --resume goes on where a run was cut off. A ratio is our median latency over the peer's in the same round; with --processor-time, for a busy machine and one thread, our smallest processor time of a
run over the peer's, over all rounds; else a model's ratio is the median over the rounds. Claim: the geometric mean of the ratios is at most 1.0, and none is above 1.5.
"""
import statistics
import tempfile
from pathlib import Path

import common
import exports

USUAL_EXPORTS = ["resnet50", "bert", "vit_b_16", "squeezenet1_1", "efficientnet_b0", "mobilenet_v3_large", "lstm", "convnext_tiny", "swin_t", "gpt2_masked", "whisper_encoder"]
LARGE = ["resnet50", "mobilenet_v2", "densenet121", "vit_b16", "bert"]


COLUMNS = {"model": "model", "threads": "threads", "ours_ms": ("libgraphrt ms", ".3f"), "onnxruntime_ms": ("onnxruntime ms", ".3f"),
           "ratio": ("ratio", ".3f")}


def exported_now(options):
    """Paths of models exported for this, one after the other, kept in the build directory."""
    directory = options.build / "bench" / "exports"
    directory.mkdir(parents=True, exist_ok=True)
    for name in options.exports or USUAL_EXPORTS:
        for exporter in exports.EXPORTERS:
            common.note(f"exporting {name} ({exporter})")
            path = exports.export_apart(directory, name, "full", options.batch, exporter, False)
            if path:
                yield path


def time_of(options, result):
    return result["processor_ms"] if options.processor_time else result["latency_ms"]["p50"]


def summarised(options, pairs):
    """Ours, the peer's and the ratio, of all rounds."""
    ours, theirs = zip(*pairs)
    if options.processor_time:
        return min(ours), min(theirs), min(ours) / min(theirs)
    return statistics.median(ours), statistics.median(theirs), statistics.median(a / b for a, b in pairs)


def measure(options, path, threads):
    plan = common.plan(options.build, path)
    pairs = []
    ours_env, peer_env = common.environments(options)
    with tempfile.TemporaryDirectory() as inputs:
        for turn in common.rounds_within(options):
            common.note(f"{common.title(path)}, {threads} threads, round {turn + 1} of {options.rounds}")
            theirs = common.ort_bench([path], inputs, "--threads", threads, "--seconds", options.seconds, env=peer_env)[0]
            ours = common.grt_bench(options.build, plan, Path(inputs), "--threads", threads, "--seconds", options.seconds, env=ours_env)
            pairs.append((time_of(options, ours), time_of(options, theirs)))
    ours_ms, theirs_ms, ratio = summarised(options, pairs)
    return {
        "model": common.title(path), "threads": threads, "ours_ms": ours_ms, "onnxruntime_ms": theirs_ms, "ratio": ratio,
        "rounds": [{"ours_ms": a, "onnxruntime_ms": b} for a, b in pairs],
    }


def main():
    parser = common.parser(__doc__)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="thread counts (default: 1 2)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each side (default 3)")
    parser.add_argument("--seconds", type=float, default=1.0, help="measured time of a turn (default 1)")
    parser.add_argument("--limit", type=float, default=15.0, help="seconds for a model with one number of threads, after which no further round begins (default 15)")
    parser.add_argument("--processor-time", action="store_true", help="compare the smallest processor time of a run, not latency; the result is one of its own")
    common.add_isa(parser)
    parser.add_argument("--resume", action="store_true", help="go on where a run with the same settings and versions was cut off")
    parser.add_argument("--models", nargs="+", help="only these: resnet50, exported-bert, ...")
    parser.add_argument("--exports", nargs="*", metavar="NAME", choices=exports.names(),
                        help="measure models exported on the spot instead: these, or the usual ones; needs PyTorch and their packages")
    parser.add_argument("--batch", type=int, default=1, help="of models exported on the spot (default 1)")
    options = parser.parse_args()
    names, what = options.models, "cpu_speed" if options.exports is None else "cpu_exports"
    what += "_processor" if options.processor_time else ""
    what += f"_{options.isa}" if options.isa else ""
    if options.exports is not None:
        paths = exported_now(options)
    else:
        paths = [p for p in common.exported(options.build) if not names or common.title(p) in names]
        paths += [common.generated(options.build, n) for n in LARGE if not names or n in names]

    kept = common.Rows(options, what, COLUMNS, rounds=options.rounds, seconds=options.seconds, limit=options.limit, batch=options.batch, isa=options.isa, processor_time=options.processor_time)
    failures = []
    for path in paths:
        for threads in options.threads:
            try:
                if not kept.has(model=common.title(path), threads=threads):
                    kept.add(measure(options, path, threads))
            except RuntimeError as error:
                failures.append({"model": common.title(path), "threads": threads, "error": str(error)})
                print(f"{common.title(path)}, {threads} threads: {error}", flush=True)
    rows = kept.rows
    summary = {"text": [f"{f['model']}, {f['threads']} threads: {f['error']}" for f in failures]}
    for threads in options.threads:
        ratios = {r["model"]: r["ratio"] for r in rows if r["threads"] == threads}
        if ratios:
            worst = max(ratios, key=ratios.get)
            summary[f"threads_{threads}"] = {"geomean": common.geomean(ratios.values()), "worst": ratios[worst], "worst_model": worst,
                                             "models": len(ratios)}
            summary["text"].append(f"{threads} threads: geometric mean of {len(ratios)} ratios {common.geomean(ratios.values()):.3f}, "
                                   f"worst {ratios[worst]:.3f} ({worst})")
    common.report(options, what, summary, rows, COLUMNS, failures=failures)


if __name__ == "__main__":
    main()
