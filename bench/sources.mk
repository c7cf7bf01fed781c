# Benchmarks: run by bench/run.sh, never by make.
EXTRA_DIST += bench/README.md bench/run.sh bench/common.py bench/table.py bench/peers/ort_bench.py
EXTRA_DIST += bench/cpu_speed.py bench/gpu_speed.py bench/startup.py bench/memory.py bench/compile_time.py bench/host_overhead.py
