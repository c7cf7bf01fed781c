# SPDX-License-Identifier: Apache-2.0
# A device that tests have instead of a GPU: in programs that register it, and a module for those that do not. Never installed.
mirror_files =
mirror_files += tests/mirror/mirror.h tests/mirror/mirror.c
mirror_files += tests/mirror/code.h tests/mirror/code.c
mirror_files += tests/mirror/kernel.h tests/mirror/kernel.c
mirror_files += tests/mirror/graph.h tests/mirror/graph.c
mirror_files += tests/mirror/stream.h tests/mirror/stream.c
mirror_objects = $(patsubst %,mirror-objects/%.o,$(filter %.c,$(mirror_files)))
noinst_DATA += libgraphrt-mirror.so
mirror-objects/%.c.o: $(top_srcdir)/%.c
	@$(MKDIR_P) $(@D)
	$(AM_V_CC)$(CC) $(DEFS) $(AM_CPPFLAGS) $(CPPFLAGS) $(AM_CFLAGS) $(CFLAGS) -fPIC -MD -MP -MF $@.d -c $< -o $@
libgraphrt-mirror.so: $(mirror_objects) libgraphrt.la
	$(AM_V_CCLD)$(CC) -shared -o $@ $(mirror_objects) $(AM_CFLAGS) $(CFLAGS) -L.libs -lgraphrt -lpthread $(AM_LDFLAGS) $(LDFLAGS)
CLEANFILES += libgraphrt-mirror.so
-include $(mirror_objects:=.d)
# Unit tests: one file per noun, each with `Suite *suite_<file>(void)`; add the file to unit_SOURCES, nothing else.
# Check runs every test in a process of its own, with a time limit.
check_PROGRAMS += tests/unit/unit
# First what takes longest, so that nothing long is left for the end: the halves of the unit tests, and those of lower instruction sets.
dist_check_SCRIPTS += tests/scripts/unit_odd.sh tests/scripts/unit_even.sh tests/scripts/isa.sh
TESTS += tests/scripts/unit_odd.sh tests/scripts/unit_even.sh tests/scripts/isa.sh
unit_SOURCES =
unit_SOURCES += tests/unit/test_algo_cache.c tests/unit/test_algo_cache_files.c tests/unit/test_algo_cache_writers.c
unit_SOURCES += tests/unit/test_background.c tests/unit/test_code.c
unit_SOURCES += tests/unit/test_plan_store.c
unit_SOURCES += tests/unit/test_abi.c
unit_SOURCES += tests/unit/test_api.c
unit_SOURCES += tests/unit/test_backend.c
unit_SOURCES += tests/unit/test_bad_models.c
unit_SOURCES += tests/unit/test_binding.c
unit_SOURCES += tests/unit/test_budget.c
unit_SOURCES += tests/unit/test_exit_guard.c
unit_SOURCES += tests/unit/test_cores.c
unit_SOURCES += tests/unit/test_custom.c
unit_SOURCES += tests/unit/test_oversubscription.c
unit_SOURCES += tests/unit/test_dim.c
unit_SOURCES += tests/unit/test_check.c tests/unit/test_col2im.c
unit_SOURCES += tests/unit/test_einsum.c
unit_SOURCES += tests/unit/test_extremes.c
unit_SOURCES += tests/unit/test_few_channels.c tests/unit/test_conv_fold.c
unit_SOURCES += tests/unit/test_faults.c
unit_SOURCES += tests/unit/test_frame.c
unit_SOURCES += tests/unit/test_dnn_profile.c tests/unit/test_cuda_files.c tests/unit/test_cuda_gemm_plan.c
unit_SOURCES += tests/unit/test_cuda_attention_mask.c
unit_SOURCES += tests/unit/test_cuda_attention_plan.c
unit_SOURCES += tests/unit/test_shared_objects.c
unit_SOURCES += tests/unit/test_in_flight.c
unit_SOURCES += tests/unit/test_service_stop.c tests/unit/test_prepared.c tests/unit/test_service_rows.c tests/unit/test_service_queue.c tests/unit/test_service_histograms.c
unit_SOURCES += tests/unit/test_service_lanes.c tests/unit/test_service_batches.c
unit_SOURCES += tests/unit/test_service_misuse.c tests/unit/test_service_disturbed.c
unit_SOURCES += tests/unit/test_schedule.c tests/unit/test_linger.c
unit_SOURCES += tests/unit/test_state.c
unit_SOURCES += tests/unit/test_stop.c
unit_SOURCES += tests/unit/test_sessions.c tests/unit/test_pool.c
unit_SOURCES += tests/unit/test_pool_state.c tests/unit/test_spans.c
unit_SOURCES += tests/unit/test_processes.c
unit_SOURCES += tests/unit/test_traits.c tests/unit/test_input_types.c
unit_SOURCES += tests/unit/test_thread_share.c
unit_SOURCES += tests/unit/test_tune.c
unit_SOURCES += tests/unit/test_upload.c
unit_SOURCES += tests/unit/test_import.c
unit_SOURCES += tests/unit/test_import_bodies.c
unit_SOURCES += tests/unit/test_import_bytes.c
unit_SOURCES += tests/unit/test_import_forgiving.c
unit_SOURCES += tests/unit/test_foreign.c
unit_SOURCES += tests/unit/test_import_functions.c
unit_SOURCES += tests/unit/test_import_operators.c
unit_SOURCES += tests/unit/test_import_tensors.c
unit_SOURCES += tests/unit/test_large.c
unit_SOURCES += tests/unit/test_value_map.c
unit_SOURCES += tests/unit/test_lost.c
unit_SOURCES += tests/unit/test_memory_api.c
unit_SOURCES += tests/unit/test_kernel_memory.c
unit_SOURCES += tests/unit/test_memory_limit.c
unit_SOURCES += tests/unit/test_metadata.c
unit_SOURCES += tests/unit/test_verify.c
unit_SOURCES += tests/unit/test_plan.c
unit_SOURCES += tests/unit/test_printable.c tests/unit/test_signature.c
unit_SOURCES += tests/unit/test_plan_choices.c
unit_SOURCES += tests/unit/test_move.c
unit_SOURCES += tests/unit/test_movement.c
unit_SOURCES += tests/unit/test_resize.c
unit_SOURCES += tests/unit/test_shape_rules.c
unit_SOURCES += tests/unit/test_infer_bodies.c
unit_SOURCES += tests/unit/test_pass_affine.c
unit_SOURCES += tests/unit/test_pass_all.c
unit_SOURCES += tests/unit/test_pass_attention.c
unit_SOURCES += tests/unit/test_attention_native.c
unit_SOURCES += tests/unit/test_pass_batch_branches.c
unit_SOURCES += tests/unit/test_pass_causal_mask.c
unit_SOURCES += tests/unit/test_pass_softmax.c
unit_SOURCES += tests/unit/test_pass_growth.c
unit_SOURCES += tests/unit/test_pass_planes.c
unit_SOURCES += tests/unit/test_pass_joined_slices.c
unit_SOURCES += tests/unit/test_pass_joined_convs.c
unit_SOURCES += tests/unit/test_pass_pixel_filters.c tests/unit/test_pass_spectra.c
unit_SOURCES += tests/unit/test_pass_slice_updates.c
unit_SOURCES += tests/unit/test_pass_mask_rows.c
unit_SOURCES += tests/unit/test_pass_weight_gates.c
unit_SOURCES += tests/unit/test_pass_weight_rows.c
unit_SOURCES += tests/unit/test_pass_norm_activation.c tests/unit/test_pass_stacks.c tests/unit/test_pass_whole_vectors.c tests/unit/test_pass_whole_columns.c tests/unit/test_simplify_truths.c
unit_SOURCES += tests/unit/test_pass_weight_steps.c
unit_SOURCES += tests/unit/test_pass_whole_groups.c
unit_SOURCES += tests/unit/test_index_map.c
unit_SOURCES += tests/unit/test_pass_moves.c
unit_SOURCES += tests/unit/test_pass_row_moves.c
unit_SOURCES += tests/unit/test_pass_left_products.c
unit_SOURCES += tests/unit/test_pass_mixed_heads.c
unit_SOURCES += tests/unit/test_pass_single_parts.c
unit_SOURCES += tests/unit/test_pass_joined_products.c
unit_SOURCES += tests/unit/test_pass_step_rows.c
unit_SOURCES += tests/unit/test_pass_turned_products.c
unit_SOURCES += tests/unit/test_pass_row_order.c
unit_SOURCES += tests/unit/test_pass_row_places.c
unit_SOURCES += tests/unit/test_attention_exports.c
unit_SOURCES += tests/unit/test_pass_column_order.c
unit_SOURCES += tests/unit/test_pass_recognise_selection.c tests/unit/test_pass_rotary_repeats.c
unit_SOURCES += tests/unit/test_pass_cse.c
unit_SOURCES += tests/unit/test_pass_dce.c
unit_SOURCES += tests/unit/test_pass_drop_shape_inputs.c
unit_SOURCES += tests/unit/test_pass_epilogue.c
unit_SOURCES += tests/unit/test_pass_equal_parts.c
unit_SOURCES += tests/unit/test_pass_fold.c
unit_SOURCES += tests/unit/test_pass_fold_if.c
unit_SOURCES += tests/unit/test_pass_layout.c
unit_SOURCES += tests/unit/test_pass_legalise.c
unit_SOURCES += tests/unit/test_pass_legalise_dtypes.c
unit_SOURCES += tests/unit/test_pass_merge_products.c
unit_SOURCES += tests/unit/test_pass_networks.c
unit_SOURCES += tests/unit/test_pass_merge_gathers.c
unit_SOURCES += tests/unit/test_pass_rotary_pairs.c
unit_SOURCES += tests/unit/test_pass_cache_updates.c
unit_SOURCES += tests/unit/test_pass_moved_parts.c
unit_SOURCES += tests/unit/test_pass_woven_convs.c
unit_SOURCES += tests/unit/test_cuda_gemm_weave.c
unit_SOURCES += tests/unit/test_cache_update.c
unit_SOURCES += tests/unit/test_concat.c
unit_SOURCES += tests/unit/test_woven_conv.c
unit_SOURCES += tests/unit/test_pass_attention_parts.c
unit_SOURCES += tests/unit/test_rotary.c
unit_SOURCES += tests/unit/test_pass_merge_projections.c
unit_SOURCES += tests/unit/test_pass_partial_rotary.c
unit_SOURCES += tests/unit/test_pass_rotary_tokens.c
unit_SOURCES += tests/unit/test_pass_interleaved_rotary.c
unit_SOURCES += tests/unit/test_pass_phases.c
unit_SOURCES += tests/unit/test_pass_pointwise.c tests/unit/test_pass_pointwise_parts.c
unit_SOURCES += tests/unit/test_pass_rows.c
unit_SOURCES += tests/unit/test_pass_half_models.c
unit_SOURCES += tests/unit/test_pass_precision.c
unit_SOURCES += tests/unit/test_pass_recognise.c
unit_SOURCES += tests/unit/test_pass_rotary.c
unit_SOURCES += tests/unit/test_pass_simplify.c
unit_SOURCES += tests/unit/test_pass_symbolic_sizes.c
unit_SOURCES += tests/unit/test_pass_tokens.c
unit_SOURCES += tests/unit/test_attention.c
unit_SOURCES += tests/unit/test_attention_near.c
unit_SOURCES += tests/unit/test_score_moves.c
unit_SOURCES += tests/unit/test_flops.c
unit_SOURCES += tests/unit/test_loss.c
unit_SOURCES += tests/unit/test_regex.c
unit_SOURCES += tests/unit/test_replay.c
unit_SOURCES += tests/unit/test_sequence.c
unit_SOURCES += tests/unit/test_signal.c
unit_SOURCES += tests/unit/test_string.c
unit_SOURCES += tests/unit/test_integer.c
unit_SOURCES += tests/unit/test_dnnl_layout.c
unit_SOURCES += tests/unit/test_dnnl_isa.c
unit_SOURCES += tests/unit/test_isa.c
unit_SOURCES += tests/unit/test_ml.c
unit_SOURCES += tests/unit/test_ml_models.c
unit_SOURCES += tests/unit/test_pointwise.c tests/unit/test_pointwise_functions.c tests/unit/test_pointwise_group.c tests/unit/test_cast.c
unit_SOURCES += tests/unit/test_attention_short.c
unit_SOURCES += tests/unit/test_row_folds.c
unit_SOURCES += tests/unit/test_gemm_dots.c
unit_SOURCES += tests/unit/test_rows.c
unit_SOURCES += tests/unit/test_view.c tests/unit/test_stays.c
unit_SOURCES += tests/unit/test_visible.c
unit_SOURCES += tests/unit/test_gemm.c
unit_SOURCES += tests/unit/test_bgemm.c
unit_SOURCES += tests/unit/test_byte_table.c
unit_SOURCES += tests/unit/test_qgemm.c
unit_SOURCES += tests/unit/test_qwinograd.c
unit_SOURCES += tests/unit/test_qconv.c
unit_SOURCES += tests/unit/test_widen.c
unit_SOURCES += tests/unit/test_weights_api.c
unit_SOURCES += tests/unit/test_wmatmul.c
unit_SOURCES += tests/unit/test_weight_pack.c
unit_SOURCES += tests/unit/test_pass_quantised.c
unit_SOURCES += tests/unit/test_pass_quantised_moves.c
unit_SOURCES += tests/unit/test_pass_quantised_targets.c
unit_SOURCES += tests/unit/test_pass_rounded_attention.c
unit_SOURCES += tests/unit/test_pass_quantised_weights.c
unit_SOURCES += tests/unit/test_quantize.c tests/unit/test_quantize_model.c
unit_SOURCES += tests/unit/test_conv.c tests/unit/test_conv_geometry.c tests/unit/test_conv_pixels.c tests/unit/test_depth_multipliers.c
unit_SOURCES += tests/unit/test_window_pools.c tests/unit/test_window.c
unit_SOURCES += tests/unit/test_float_paths.c
unit_SOURCES += tests/unit/test_winograd.c
unit_SOURCES += tests/unit/test_matmul.c
unit_SOURCES += tests/unit/test_norm.c
unit_SOURCES += tests/unit/test_rnn.c
unit_SOURCES += tests/unit/test_rnn_row_blocks.c
unit_SOURCES += tests/unit/test_rnn_tiles.c
unit_SHARED =
# Text alone: it needs no CUDA.
unit_SHARED += backends/cuda/dnn_profile.h backends/cuda/dnn_profile.c
unit_SHARED += backends/cuda/gemm_forms.h backends/cuda/gemm_plan.h backends/cuda/gemm_plan.c
unit_SHARED += backends/cuda/attention_plan.h backends/cuda/attention_plan.c
unit_SHARED += backends/cuda/attention_mask.h
unit_SHARED += backends/cuda/shared_objects.h backends/cuda/shared_objects.c
unit_SHARED += backends/cuda/weight_pack.h backends/cuda/weight_pack.c
unit_SHARED += backends/cuda/cubin.h backends/cuda/cubin.c backends/cuda/json.h backends/cuda/json.c
unit_SHARED += tests/unit/import_check.c tests/unit/import_check.h
unit_SHARED += tests/unit/ir_text.h tests/unit/ir_text.c tests/unit/quantised_text.h
unit_SHARED += tests/unit/op_runner.c tests/unit/op_runner.h
unit_SHARED += tests/unit/windows.c tests/unit/windows.h
unit_SHARED += tools/visible.c tools/visible.h
unit_SHARED += tests/unit/bounded.c tests/unit/bounded.h
unit_SHARED += tests/unit/files.c tests/unit/files.h
unit_SHARED += tests/unit/algo_cache.c tests/unit/algo_cache.h
unit_SHARED += tests/unit/evaluate.c tests/unit/evaluate.h
unit_SHARED += tests/unit/service.c tests/unit/service.h
unit_SHARED += tests/unit/runtime.c tests/unit/runtime.h
unit_SHARED += tests/unit/tile_model.inc
unit_SHARED += tests/unit/mark.c
unit_SHARED += tests/unit/suite.c tests/unit/suite.h
unit_SHARED += tests/unit/onnx_model.c tests/unit/onnx_model.h
unit_SHARED += tests/unit/opened.c tests/unit/opened.h
unit_SHARED += tests/unit/plan_sample.c tests/unit/plan_sample.h
unit_SHARED += tests/unit/tables.c tests/unit/tables.h
unit_SHARED += $(mirror_files)
EXTRA_DIST += tests/unit/test_image.c tests/unit/image_samples.h
if IMAGE
unit_SOURCES += tests/unit/test_image.c
unit_SHARED += $(image_files)
endif
tests_unit_unit_SOURCES = tests/unit/main.c $(unit_SOURCES) $(unit_SHARED)
tests_unit_unit_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS) $(IMAGE_CFLAGS) -D_mark_point=unit_mark
# main.c declares the suites from the list of files; there is no header to repeat them.
tests_unit_unit_CFLAGS = $(AM_CFLAGS) -Wno-missing-prototypes
tests_unit_unit_LDADD = libgraphrt-all.la $(CHECK_LIBS) $(JANSSON_LIBS) $(SQLITE_LIBS) $(IMAGE_LIBS)
BUILT_SOURCES += unit_suites.inc
unit_suites.inc: $(top_srcdir)/tests/sources.mk Makefile
	$(AM_V_GEN)for f in $(unit_SOURCES); do echo "X($$(basename $$f .c))"; done > $@.tmp && mv $@.tmp $@
# Conformance cases are run by run-tests.sh: they take longer than make check should.
EXTRA_DIST += tests/data/README.md tests/data/large_convolutions.onnx tests/data/onnx-node-opset28.tar.xz tests/data/contrib.tar.xz tests/data/contrib.py tests/data/pointwise.py tests/data/exact.py tests/data/pt2e.py tests/data/weights.py tests/data/rolls.py tests/data/relus.py tests/data/levels.py tests/data/heads.py tests/data/rounded.py tests/data/decoder.py tests/data/lists.py tests/data/patterns.py tests/data/cases tests/data/patterns
EXTRA_DIST += tests/data/contrib_cases/__init__.py tests/data/contrib_cases/attention.py tests/data/contrib_cases/classical.py tests/data/contrib_cases/common.py tests/data/contrib_cases/elementwise.py tests/data/contrib_cases/quantized.py tests/data/contrib_cases/recurrent.py tests/data/contrib_cases/tensors.py
EXTRA_DIST += tests/conformance/run.sh tests/conformance/unpack.sh tests/conformance/expected_failures.txt tests/conformance/recognised.txt tests/conformance/not_run.txt
EXTRA_DIST += tests/conformance/device.sh tests/conformance/cuda_cpu_only.txt tests/conformance/mirror_cpu_only.txt tests/conformance/sanitize-cuda.sh
# On a machine with a GPU; from a bundle: tests/conformance/device.sh BUNDLE cuda
check-cuda: all $(check_PROGRAMS)
	$(top_srcdir)/tests/conformance/device.sh $(top_builddir) cuda
.PHONY: check-cuda
# Generated kernels compile; without a GPU, from those of the module's objects that the test needs.
if CUDA
check_PROGRAMS += tests/generate/generate
TESTS += tests/generate/generate
tests_generate_generate_SOURCES = tests/generate/generate.c
tests_generate_generate_CPPFLAGS = -I$(top_srcdir) -I$(top_srcdir)/include $(CUDA_CPPFLAGS)
tests_generate_generate_DEPENDENCIES = cuda-objects/module.a libgraphrt-all.la
tests_generate_generate_LDADD = cuda-objects/module.a libgraphrt-all.la -L$(CUDA_DIR)/lib64 -lcudart_static -ldl -lrt -lpthread
endif
# What generated kernels compute, on the host: needs a C++ compiler, and neither CUDA nor a GPU.
check_PROGRAMS += tests/emulate/emulate
TESTS += tests/emulate/emulate
tests_emulate_emulate_SOURCES = tests/emulate/main.c tests/emulate/nvrtc.h tests/emulate/nvrtc.c
tests_emulate_emulate_SOURCES += tests/emulate/translate.h tests/emulate/translate.c
tests_emulate_emulate_SOURCES += backends/cuda/generated_source.h backends/cuda/generated_source.c
tests_emulate_emulate_SOURCES += backends/cuda/pointwise_source.h backends/cuda/pointwise_source.c
tests_emulate_emulate_SOURCES += backends/cuda/networks_source.h backends/cuda/networks_source.c
tests_emulate_emulate_SOURCES += backends/cuda/rows_source.h backends/cuda/rows_source.c
tests_emulate_emulate_LDADD = libgraphrt-all.la -ldl -lm
EXTRA_DIST += tests/emulate/cuda.h
# What files of backends/cuda/ops/ compute, on the host: CUDA's headers, no GPU. The opened files call the library.
if CUDA
check_PROGRAMS += tests/emulate/operators
TESTS += tests/emulate/operators
tests_emulate_operators_SOURCES = tests/emulate/operators.c tests/emulate/called.h tests/emulate/called.c
tests_emulate_operators_SOURCES += tests/emulate/translate.h tests/emulate/translate.c
tests_emulate_operators_CPPFLAGS = $(AM_CPPFLAGS) -DCUDA_INCLUDE='"$(CUDA_DIR)/include"'
tests_emulate_operators_LDFLAGS = -export-dynamic
tests_emulate_operators_LDADD = libgraphrt-all.la -ldl -lm
endif
EXTRA_DIST += tests/emulate/launches.h
# The public API beside the caller's own use of CUDA, and faults: part of check-cuda, bin/device in a bundle.
EXTRA_DIST += tests/device/tests.def
if CUDA
check_PROGRAMS += tests/device/device
tests_device_device_SOURCES = tests/device/main.c tests/device/async.c tests/device/copies.c tests/device/data.c tests/device/faults.c tests/device/order.c tests/device/device.h
tests_device_device_SOURCES += tests/device/parts.c tests/device/memory.c tests/device/exits.c
tests_device_device_SOURCES += tests/device/workers.c tests/device/fragile.c tests/device/fragile.h
tests_device_device_SOURCES += tests/differential/model.c tests/differential/model.h
tests_device_device_CPPFLAGS = -I$(top_srcdir) -I$(top_srcdir)/include $(CUDA_CPPFLAGS)
tests_device_device_LDADD = libgraphrt.la -L$(CUDA_DIR)/lib64 -lcudart_static -ldl -lrt -lpthread
endif
# What every device must do: over all that are here, part of device.sh for one; from a bundle: bin/interface --device cuda:0
check_PROGRAMS += tests/interface/interface
TESTS += tests/interface/interface
tests_interface_interface_SOURCES = tests/interface/main.c tests/interface/interface.h tests/interface/tests.def
tests_interface_interface_SOURCES += tests/interface/memory.c tests/interface/copies.c tests/interface/order.c
tests_interface_interface_LDADD = libgraphrt.la -lpthread -lm
# Random nodes on a device beside the CPU; on the mirror here, on a GPU from a bundle: bin/differential --device cuda
check_PROGRAMS += tests/differential/differential
TESTS += tests/differential/differential
tests_differential_differential_SOURCES = tests/differential/differential.c tests/differential/model.c tests/differential/model.h
tests_differential_differential_SOURCES += tests/differential/buffer.c tests/differential/buffer.h
tests_differential_differential_SOURCES += tools/element.c tools/element.h
tests_differential_differential_SOURCES += tests/differential/draw.c tests/differential/draw.h
tests_differential_differential_SOURCES += tests/differential/node.c tests/differential/node.h
tests_differential_differential_SOURCES += tests/differential/makers.c tests/differential/makers.h tests/differential/makers.def
tests_differential_differential_SOURCES += tests/differential/make_attention.c
tests_differential_differential_SOURCES += tests/differential/make_image.c
tests_differential_differential_SOURCES += tests/differential/make_long.c
tests_differential_differential_SOURCES += tests/differential/make_math.c
tests_differential_differential_SOURCES += tests/differential/make_matrix.c
tests_differential_differential_SOURCES += tests/differential/make_quantised.c
tests_differential_differential_SOURCES += tests/differential/make_move.c
tests_differential_differential_SOURCES += tests/differential/make_random.c
tests_differential_differential_SOURCES += tests/differential/make_search.c
tests_differential_differential_SOURCES += tests/differential/make_signal.c
tests_differential_differential_SOURCES += tests/differential/make_weights.c
tests_differential_differential_SOURCES += tests/differential/make_float8.c
tests_differential_differential_CPPFLAGS = -I$(top_srcdir) -I$(top_srcdir)/include
tests_differential_differential_LDADD = libgraphrt.la -lm
# The wrappers for C++.
check_PROGRAMS += tests/cxx/wrappers
TESTS += tests/cxx/wrappers
tests_cxx_wrappers_SOURCES = tests/cxx/wrappers.cc
tests_cxx_wrappers_CPPFLAGS = -I$(top_srcdir)/include
tests_cxx_wrappers_CXXFLAGS = $(AM_CXXFLAGS) -std=c++17 $(SANITIZE)
tests_cxx_wrappers_LDADD = libgraphrt.la
EXTRA_DIST += tests/cmake/CMakeLists.txt
# Scripts: the last line of each is its totals. CC, CXX and SANITIZE are for those that compile the program in README.md.
AM_TESTS_ENVIRONMENT = CC='$(CC)'; export CC; CXX='$(CXX)'; export CXX; SANITIZE='$(SANITIZE)'; export SANITIZE; GRAPHRT_ALGO_CACHE=off; export GRAPHRT_ALGO_CACHE;
dist_check_SCRIPTS += tests/scripts/includes.sh tests/scripts/names.sh tests/scripts/calls.sh tests/scripts/examples.sh tests/scripts/readme.sh tests/scripts/fuzz.sh
dist_check_SCRIPTS += tests/scripts/docs.sh
TESTS += tests/scripts/docs.sh
dist_check_SCRIPTS += tests/scripts/modules.sh
TESTS += tests/scripts/modules.sh
dist_check_SCRIPTS += tests/scripts/site.sh
dist_check_SCRIPTS += tests/scripts/snippets.sh
TESTS += tests/scripts/site.sh
TESTS += tests/scripts/snippets.sh
TESTS += tests/scripts/includes.sh tests/scripts/names.sh
TESTS += tests/scripts/calls.sh
dist_check_SCRIPTS += tests/scripts/op_files.sh
TESTS += tests/scripts/op_files.sh
dist_check_SCRIPTS += tests/scripts/input_types.sh
TESTS += tests/scripts/input_types.sh
dist_check_SCRIPTS += tests/scripts/refused.sh
TESTS += tests/scripts/refused.sh
TESTS += tests/scripts/examples.sh
TESTS += tests/scripts/readme.sh
TESTS += tests/scripts/fuzz.sh
# The tools, from their users' side.
check_PROGRAMS += tests/scripts/json_has
tests_scripts_json_has_SOURCES = tests/scripts/json_has.c
tests_scripts_json_has_LDADD = $(JANSSON_LIBS)
check_PROGRAMS += tests/scripts/json_valid
tests_scripts_json_valid_SOURCES = tests/scripts/json_valid.c
tests_scripts_json_valid_LDADD = $(JANSSON_LIBS)
dist_check_SCRIPTS += tests/scripts/tools.sh
dist_check_SCRIPTS += tests/scripts/bad_input.sh tests/scripts/bounds.sh
dist_check_SCRIPTS += tests/scripts/drivers.sh tests/scripts/starve.sh
EXTRA_DIST += tests/scripts/starve.c
dist_check_SCRIPTS += tests/scripts/interrupt.sh tests/scripts/trust.sh
EXTRA_DIST += tests/scripts/interrupt.c
TESTS += tests/scripts/interrupt.sh
dist_check_SCRIPTS += tests/scripts/seeing.sh
EXTRA_DIST += tests/scripts/nvtx_listener.c
TESTS += tests/scripts/seeing.sh
TESTS += tests/scripts/trust.sh
check_PROGRAMS += tests/starve/starve tests/starve/few_threads
tests_starve_starve_SOURCES = tests/starve/starve.c tests/starve/refuse.c tests/starve/refuse.h
tests_starve_starve_LDADD = libgraphrt.la -lm -ldl
tests_starve_few_threads_SOURCES = tests/starve/few_threads.c
tests_starve_few_threads_LDADD = libgraphrt.la -lpthread -ldl
dist_check_SCRIPTS += tests/scripts/install.sh
dist_check_SCRIPTS += tests/scripts/bench.sh
TESTS += tests/scripts/bench.sh
dist_check_SCRIPTS += tests/scripts/man.sh
TESTS += tests/scripts/tools.sh
dist_check_SCRIPTS += tests/scripts/packaging.sh
TESTS += tests/scripts/packaging.sh
dist_check_SCRIPTS += tests/scripts/shard.sh
TESTS += tests/scripts/shard.sh
dist_check_SCRIPTS += tests/scripts/quantize.sh
TESTS += tests/scripts/quantize.sh
dist_check_SCRIPTS += tests/scripts/precision.sh
TESTS += tests/scripts/precision.sh
TESTS += tests/scripts/bad_input.sh
TESTS += tests/scripts/bounds.sh
EXTRA_DIST += tests/data/bounds
TESTS += tests/scripts/drivers.sh
TESTS += tests/scripts/starve.sh
TESTS += tests/scripts/install.sh
TESTS += tests/scripts/man.sh
EXTRA_DIST += tests/scripts/lib.sh
# Models that are wrong in what they say: mutate.sh in make check; any number with tests/mutate/mutate --count N data/node.
trial_SOURCES = tests/mutate/trial.c tests/mutate/trial.h tests/mutate/content.c tests/mutate/content.h
trial_SOURCES += tests/differential/draw.c tests/differential/draw.h
# How trials end what does not end by itself.
trial_link = $(AM_LDFLAGS) -Wl,--wrap=grt_frame_run
mutation_SOURCES = tests/mutate/pool.c tests/mutate/pool.h
mutation_SOURCES += tests/mutate/mutation.c tests/mutate/mutation.h
mutation_SOURCES += tests/mutate/mutate_attribute.c
mutation_SOURCES += tests/mutate/mutate_node.c
mutation_SOURCES += tests/mutate/mutate_tensor.c
mutation_SOURCES += tests/mutate/mutate_value.c
batch_SOURCES = tests/mutate/batch.c tests/mutate/batch.h
check_PROGRAMS += tests/mutate/mutate
tests_mutate_mutate_SOURCES = tests/mutate/main.c $(batch_SOURCES) $(mutation_SOURCES) $(trial_SOURCES) $(mirror_files)
tests_mutate_mutate_LDADD = libgraphrt-all.la
tests_mutate_mutate_LDFLAGS = $(trial_link)
# Plans changed in what they say, checksums and all: fuzz.sh in make check; any number with tests/forge/forge --count N PLAN...
forgery_SOURCES = tests/forge/forgery.c tests/forge/forgery.h tests/forge/fields.c tests/forge/fields.h
reseal_SOURCES = tests/unit/plan_sample.c tests/unit/plan_sample.h
check_PROGRAMS += tests/forge/forge
tests_forge_forge_SOURCES = tests/forge/main.c $(batch_SOURCES) $(forgery_SOURCES) $(reseal_SOURCES) $(trial_SOURCES)
tests_forge_forge_LDADD = libgraphrt-all.la
tests_forge_forge_LDFLAGS = $(trial_link)
# Fuzz targets: replay_* in make check, fuzz_* with --enable-fuzzers (tests/fuzz/run.sh).
fuzz_import_SOURCES = tests/fuzz/fuzz_import.c tests/fuzz/fuzz.c tests/fuzz/fuzz.h $(trial_SOURCES)
fuzz_plan_SOURCES = tests/fuzz/fuzz_plan.c tests/fuzz/fuzz.c tests/fuzz/fuzz.h $(trial_SOURCES)
fuzz_plan_SOURCES += $(reseal_SOURCES)
fuzz_run_SOURCES = tests/fuzz/fuzz_run.c tests/fuzz/fuzz.c tests/fuzz/fuzz.h $(trial_SOURCES)
check_PROGRAMS += tests/fuzz/replay_import tests/fuzz/replay_plan tests/fuzz/replay_run
tests_fuzz_replay_import_SOURCES = tests/fuzz/replay.c $(fuzz_import_SOURCES)
tests_fuzz_replay_import_LDADD = libgraphrt-all.la $(XXHASH_LIBS)
tests_fuzz_replay_import_LDFLAGS = $(trial_link)
tests_fuzz_replay_plan_SOURCES = tests/fuzz/replay.c $(fuzz_plan_SOURCES)
tests_fuzz_replay_plan_LDADD = libgraphrt-all.la $(XXHASH_LIBS)
tests_fuzz_replay_plan_LDFLAGS = $(trial_link)
tests_fuzz_replay_run_SOURCES = tests/fuzz/replay.c $(fuzz_run_SOURCES)
tests_fuzz_replay_run_LDADD = libgraphrt-all.la $(XXHASH_LIBS)
tests_fuzz_replay_run_LDFLAGS = $(trial_link)
if FUZZERS
# Not position-independent: such programs collide with AddressSanitizer's memory where addresses are drawn from many bits.
fuzz_link = $(trial_link) -fsanitize=fuzzer -no-pie
check_PROGRAMS += tests/fuzz/fuzz_import tests/fuzz/fuzz_plan tests/fuzz/fuzz_run
tests_fuzz_fuzz_import_SOURCES = $(fuzz_import_SOURCES) tests/fuzz/mutate_model.c $(mutation_SOURCES)
tests_fuzz_fuzz_import_LDADD = libgraphrt-all.la $(XXHASH_LIBS)
tests_fuzz_fuzz_import_LDFLAGS = $(fuzz_link)
tests_fuzz_fuzz_plan_SOURCES = $(fuzz_plan_SOURCES) tests/fuzz/mutate_plan.c $(forgery_SOURCES)
tests_fuzz_fuzz_plan_LDADD = libgraphrt-all.la $(XXHASH_LIBS)
tests_fuzz_fuzz_plan_LDFLAGS = $(fuzz_link)
tests_fuzz_fuzz_run_SOURCES = $(fuzz_run_SOURCES) tests/fuzz/mutate_model.c $(mutation_SOURCES)
tests_fuzz_fuzz_run_LDADD = libgraphrt-all.la $(XXHASH_LIBS)
tests_fuzz_fuzz_run_LDFLAGS = $(fuzz_link)
endif
EXTRA_DIST += tests/fuzz/run.sh tests/fuzz/seeds.sh tests/fuzz/bundle.sh tests/fuzz/campaign.sh tests/fuzz/regressions
# A directory that fuzzes on another machine: see tests/fuzz/campaign.sh. The targets come from build-fuzz/.
fuzz-bundle: all
	$(top_srcdir)/tests/fuzz/run.sh 0
	$(top_srcdir)/tests/fuzz/seeds.sh --all . fuzz-all
	$(top_srcdir)/tests/fuzz/bundle.sh . $(top_srcdir)/build-fuzz campaign
.PHONY: fuzz-bundle
# Small exports of many families.
dist_check_SCRIPTS += tests/scripts/families.sh
TESTS += tests/scripts/families.sh
EXTRA_DIST += tests/conformance/families.txt tests/data/families.tar.xz tests/data/families.json tests/data/families.py tests/data/family_models.py
dist_check_SCRIPTS += tests/scripts/mutate.sh
EXTRA_DIST += tests/mutate/bundle.sh tests/mutate/campaign.sh
TESTS += tests/scripts/mutate.sh
# A pool under many requests: soak.sh in make check; any number with tests/soak/soak --requests N MODEL.
check_PROGRAMS += tests/soak/soak
tests_soak_soak_SOURCES = tests/soak/soak.c
tests_soak_soak_LDADD = libgraphrt.la -lpthread
dist_check_SCRIPTS += tests/scripts/soak.sh
TESTS += tests/scripts/soak.sh
