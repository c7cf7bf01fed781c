# SPDX-License-Identifier: Apache-2.0
# Benchmarks: run by bench/run.sh, never by make.
EXTRA_DIST += bench/README.md bench/run.sh bench/common.py bench/table.py bench/turns.py bench/clock.py bench/serving.py bench/exports.py
EXTRA_DIST += bench/peers/ort_bench.py bench/peers/older_cpu.py bench/peers/older_cpu.c
EXTRA_DIST += bench/catalogue.py bench/catalogue_drawn.py bench/catalogue_families.py bench/catalogue_forms.py bench/catalogue_further.py
EXTRA_DIST += bench/catalogue_language.py bench/catalogue_layers.py bench/catalogue_more.py bench/catalogue_multimodal.py
EXTRA_DIST += bench/catalogue_papers.py bench/catalogue_pictures.py bench/catalogue_recent.py bench/catalogue_signals.py
EXTRA_DIST += bench/catalogue_steps.py bench/catalogue_tasks.py bench/catalogue_timm.py bench/catalogue_torch.py
EXTRA_DIST += bench/catalogue_transformers.py bench/catalogue_vision.py
EXTRA_DIST += bench/gpu_family.py bench/gpu_ours.py bench/gpu_peers.py bench/gpu_predict.py bench/gpu_rows.py bench/gpu_run.py
EXTRA_DIST += bench/gpu_schedule.py bench/gpu_speed.py bench/gpu_stations.py bench/gpu_words.py bench/device_run.py bench/device_turns.py
EXTRA_DIST += bench/first_result.py bench/peers/torch_exports.py bench/peers/ort_exports.py bench/peers/torch_infer.py
EXTRA_DIST += bench/peers/torch_overlap.py
EXTRA_DIST += bench/branches.py bench/by_hand.py bench/classical.py bench/compile_time.py bench/cpu_speed.py bench/cpu_turns.py
EXTRA_DIST += bench/cuda_conformance.py bench/exports_sweep.py bench/genai.py bench/host_overhead.py bench/init_scaling.py
EXTRA_DIST += bench/memory.py bench/moved_bytes.py bench/operator_catalogue.py bench/operator_catalogue_gpu.py bench/operator_speed.py
EXTRA_DIST += bench/operator_speed_gpu.py bench/operators.py bench/optimised.py
EXTRA_DIST += bench/overlap.py bench/oversubscription.py bench/pairs.py bench/pool_speed.py bench/product_accuracy.py
EXTRA_DIST += bench/python_overhead.py bench/quantised.py bench/quantised_speed.py bench/startup.py bench/sweep.py bench/weight_products.py
EXTRA_DIST += bench/weight_products_cpu.py bench/wheels.py bench/init_scaling/floor.c
EXTRA_DIST += bench/test_run.py bench/test_speed.py bench/test_tables.py
# The files there have dates in their names: whatever there is.
EXTRA_DIST += bench/results
# Sessions on N GPUs, and the floor under them; the latter needs CUDA's runtime.
noinst_PROGRAMS += bench/init_scaling/ready
bench_init_scaling_ready_SOURCES = bench/init_scaling/ready.c
bench_init_scaling_ready_CPPFLAGS = -I$(top_srcdir)/include
bench_init_scaling_ready_LDADD = libgraphrt.la
# What stopping and pools cost.
noinst_PROGRAMS += bench/pool
bench_pool_SOURCES = bench/pool.c
bench_pool_CPPFLAGS = -I$(top_srcdir)/include
bench_pool_LDADD = libgraphrt.la -lpthread
# What models are predicted to take of memory, and what they take.
noinst_PROGRAMS += bench/predicted_memory
bench_predicted_memory_SOURCES = bench/predicted_memory.c
bench_predicted_memory_CPPFLAGS = -I$(top_srcdir)/include
bench_predicted_memory_LDADD = libgraphrt.la
# What a service gets out of pools on one device.
noinst_PROGRAMS += bench/service
bench_service_SOURCES = bench/service.c bench/subject.h bench/subject.c
bench_service_CPPFLAGS = -I$(top_srcdir) -I$(top_srcdir)/include
bench_service_LDADD = libgraphrt.la -lpthread
if CUDA
noinst_DATA += bench/init_scaling/floor
CLEANFILES += bench/init_scaling/floor
bench/init_scaling/floor: $(top_srcdir)/bench/init_scaling/floor.c
	@$(MKDIR_P) $(@D)
	$(AM_V_CC)$(CC) -O2 -std=gnu11 $(CUDA_CPPFLAGS) $< -o $@ -L$(CUDA_DIR)/lib64 -lcudart_static -ldl -lrt -lpthread
endif
# Where the slowest runs spend their time.
noinst_PROGRAMS += bench/tails
bench_tails_SOURCES = bench/tails.c bench/subject.h bench/subject.c
bench_tails_CPPFLAGS = -I$(top_srcdir) -I$(top_srcdir)/include
bench_tails_LDADD = libgraphrt.la -lpthread
