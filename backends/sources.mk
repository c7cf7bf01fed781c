# SPDX-License-Identifier: Apache-2.0
backends_SOURCES =
backends_SOURCES += backends/backend.h
backends_SOURCES += backends/custom.h backends/custom.c
backends_SOURCES += backends/complete.c
backends_SOURCES += backends/device.h backends/device.c
backends_SOURCES += backends/registry.h backends/registry.c backends/backends.def
backends_SOURCES += backends/kernel.h backends/kernel.c
backends_SOURCES += backends/cpu/cpu.h
backends_SOURCES += backends/cpu/tables.h backends/cpu/tables.c
backends_SOURCES += backends/cpu/backend.c
backends_SOURCES += backends/null/backend.c
backends_SOURCES += backends/null/kernel.h backends/null/kernel.c
backends_SOURCES += backends/module.h backends/module.c
backends_SOURCES += backends/algos.h backends/algos.c
backends_SOURCES += backends/cpu/act.h
backends_SOURCES += backends/cpu/gemm.h backends/cpu/gemm.c
backends_SOURCES += backends/cpu/gemm_kernel.h
backends_SOURCES += backends/cpu/gemm_c.c
backends_SOURCES += backends/cpu/gemm_avx2.c
backends_SOURCES += backends/cpu/gemm_avx512.c
backends_SOURCES += backends/cpu/qgemm.h backends/cpu/qgemm.c
backends_SOURCES += backends/cpu/qgemm_kernel.h
backends_SOURCES += backends/cpu/qgemm_finish.h
backends_SOURCES += backends/cpu/qgemm_loops.inc
backends_SOURCES += backends/cpu/qgemm_block.inc
backends_SOURCES += backends/cpu/qgemm_tiles.inc
backends_SOURCES += backends/cpu/qgemm_taps.inc
backends_SOURCES += backends/cpu/qgemm_finish.inc
backends_SOURCES += backends/cpu/qgemm_finish_avx2.inc
backends_SOURCES += backends/cpu/qgemm_finish_avx512.inc
backends_SOURCES += backends/cpu/qgemm_c.c
backends_SOURCES += backends/cpu/qgemm_avx2.c
backends_SOURCES += backends/cpu/qgemm_avx2_vnni.c
backends_SOURCES += backends/cpu/qgemm_avx512.c
backends_SOURCES += backends/cpu/qgemm_avx512_vnni.c
backends_SOURCES += backends/cpu/byte_table.h backends/cpu/byte_table.c
backends_SOURCES += backends/cpu/qlinear.h backends/cpu/qlinear.c
backends_SOURCES += backends/cpu/wgemm.h backends/cpu/wgemm.c
backends_SOURCES += backends/cpu/wgemm_kernel.h
backends_SOURCES += backends/cpu/wgemm_loops.inc
backends_SOURCES += backends/cpu/wgemm_c.c
backends_SOURCES += backends/cpu/wgemm_avx2.c
backends_SOURCES += backends/cpu/wgemm_avx512.c
backends_SOURCES += backends/cpu/qproduct.h backends/cpu/qproduct.c
backends_SOURCES += backends/cpu/qwindow.h backends/cpu/qwindow.c
backends_SOURCES += backends/cpu/dnnl.h backends/cpu/dnnl.c
backends_SOURCES += backends/cpu/dnnl_engine.h backends/cpu/dnnl_engine.c
backends_SOURCES += backends/cpu/dnnl_filter.h
backends_SOURCES += backends/cpu/dnnl_weights.h backends/cpu/dnnl_weights.c
backends_SOURCES += backends/cpu/packing.h backends/cpu/packing.c
backends_SOURCES += backends/cpu/dnnl_compat.h
backends_SOURCES += backends/cpu/dnnl_calls.h
backends_SOURCES += backends/cpu/dnnl_library.h
backends_SOURCES += backends/cpu/flip.h backends/cpu/flip.c
backends_SOURCES += backends/cpu/move.h backends/cpu/move.c
backends_SOURCES += backends/cpu/ops/reduce_fold.h
backends_SOURCES += backends/cpu/attention_exact.h backends/cpu/attention_exact.c
backends_SOURCES += backends/cpu/threads.h
backends_SOURCES += backends/cpu/isa.h backends/cpu/isa.c
backends_SOURCES += backends/cpu/vmath.h
backends_SOURCES += backends/cpu/pointwise_loops.h
backends_SOURCES += backends/cpu/pointwise_template.inc
backends_SOURCES += backends/cpu/pointwise_f32.inc
backends_SOURCES += backends/cpu/pointwise_typed.c
backends_SOURCES += backends/cpu/pointwise_f32_base.c
backends_SOURCES += backends/cpu/pointwise_f32_avx2.c
backends_SOURCES += backends/cpu/pointwise_f32_avx512.c
backends_SOURCES += backends/cpu/pointwise_walk.h backends/cpu/pointwise_walk.c
# One line per file, so that adding a kernel is one line.
cpu_ops_SOURCES =
cpu_ops_SOURCES += backends/cpu/ops/transpose.c
cpu_ops_SOURCES += backends/cpu/ops/concat.c
cpu_ops_SOURCES += backends/cpu/ops/slice.c
cpu_ops_SOURCES += backends/cpu/ops/expand.c
cpu_ops_SOURCES += backends/cpu/ops/shape.c
cpu_ops_SOURCES += backends/cpu/ops/gather.c
cpu_ops_SOURCES += backends/cpu/ops/reduce.c
cpu_ops_SOURCES += backends/cpu/ops/pointwise.c
# One line per file, so that adding a kernel is one line.
cpu_ops_SOURCES += backends/cpu/ops/pointwise_group.c backends/cpu/ops/where.c backends/cpu/ops/pow.c
cpu_ops_SOURCES += backends/cpu/ops/cast.c
backends_SOURCES += backends/cpu/convert.h backends/cpu/convert.c
cpu_ops_SOURCES += backends/cpu/ops/loss.c
cpu_ops_SOURCES += backends/cpu/ops/attention.c
cpu_ops_SOURCES += backends/cpu/ops/rotary.c
cpu_ops_SOURCES += backends/cpu/ops/recurrent.c
cpu_ops_SOURCES += backends/cpu/ops/sequence.c
cpu_ops_SOURCES += backends/cpu/ops/scatter.c
cpu_ops_SOURCES += backends/cpu/ops/pad.c
cpu_ops_SOURCES += backends/cpu/ops/select.c
cpu_ops_SOURCES += backends/cpu/ops/string.c
cpu_ops_SOURCES += backends/cpu/ops/ml.c
cpu_ops_SOURCES += backends/cpu/ops/ml_map.c
cpu_ops_SOURCES += backends/cpu/ops/ml_svm.c
cpu_ops_SOURCES += backends/cpu/ops/murmur_hash.c
cpu_ops_SOURCES += backends/cpu/ops/tree.c
backends_SOURCES += backends/cpu/regex.h backends/cpu/regex.c
backends_SOURCES += backends/cpu/regex_program.h backends/cpu/regex_match.c
backends_SOURCES += backends/cpu/byte_rounding.h
backends_SOURCES += backends/cpu/epilogue.h backends/cpu/epilogue.c
cpu_ops_SOURCES += backends/cpu/ops/compare.c
cpu_ops_SOURCES += backends/cpu/ops/quantize.c
cpu_ops_SOURCES += backends/cpu/ops/qmatmul.c
cpu_ops_SOURCES += backends/cpu/ops/wgather.c
cpu_ops_SOURCES += backends/cpu/ops/wmatmul.c
cpu_ops_SOURCES += backends/cpu/ops/qconv.c
cpu_ops_SOURCES += backends/cpu/ops/qpointwise.c
cpu_ops_SOURCES += backends/cpu/ops/qpool.c
cpu_ops_SOURCES += backends/cpu/ops/dropout.c
cpu_ops_SOURCES += backends/cpu/ops/batch_norm.c
backends_SOURCES += backends/cpu/widen.h backends/cpu/widen.c
backends_SOURCES += backends/cpu/workspace.h
backends_SOURCES += backends/shared/window.h backends/shared/window.c
backends_SOURCES += backends/shared/reduce.h backends/shared/reduce.c
backends_SOURCES += backends/shared/resize.h backends/shared/resize.c
backends_SOURCES += backends/shared/attention.h backends/shared/attention.c
backends_SOURCES += backends/shared/rotary.h backends/shared/rotary.c
backends_SOURCES += backends/shared/slice.h backends/shared/slice.c
backends_SOURCES += backends/shared/matmul.h backends/shared/matmul.c
backends_SOURCES += backends/shared/weights.h backends/shared/weights.c
backends_SOURCES += backends/shared/weight_rows.h backends/shared/weight_rows.c
backends_SOURCES += backends/shared/quantised.h backends/shared/quantised.c
backends_SOURCES += backends/shared/networks.h backends/shared/networks.c
backends_SOURCES += backends/shared/norm.h backends/shared/norm.c
backends_SOURCES += backends/shared/softmax.h backends/shared/softmax.c
backends_SOURCES += backends/shared/grid_sample.h backends/shared/grid_sample.c
backends_SOURCES += backends/shared/sampling.h backends/shared/sampling.c
backends_SOURCES += backends/shared/cumulate.h backends/shared/cumulate.c
backends_SOURCES += backends/shared/pad.h backends/shared/pad.c
backends_SOURCES += backends/shared/rnn.h backends/shared/rnn.c
backends_SOURCES += backends/shared/integer.h backends/shared/integer.c
backends_SOURCES += backends/cpu/epilogue_attrs.h backends/cpu/epilogue_attrs.c
backends_SOURCES += backends/cpu/matmul_typed.h backends/cpu/matmul_typed.c
cpu_ops_SOURCES += backends/cpu/ops/matmul.c
backends_SOURCES += backends/cpu/conv.h
backends_SOURCES += backends/cpu/conv_unfold.c
backends_SOURCES += backends/cpu/conv_exact.c
backends_SOURCES += backends/cpu/conv_columns.h backends/cpu/conv_columns.c
backends_SOURCES += backends/cpu/conv_group.c backends/cpu/conv_group.h
backends_SOURCES += backends/cpu/conv_depthwise.c backends/cpu/conv_depthwise.h
backends_SOURCES += backends/cpu/conv_taps.c backends/cpu/conv_taps.h
backends_SOURCES += backends/cpu/depthwise_kernel.h
backends_SOURCES += backends/cpu/depthwise_loops.inc
backends_SOURCES += backends/cpu/depthwise_base.c
backends_SOURCES += backends/cpu/depthwise_avx2.c
backends_SOURCES += backends/cpu/depthwise_avx512.c
backends_SOURCES += backends/cpu/conv_winograd.c backends/cpu/conv_winograd.h
cpu_ops_SOURCES += backends/cpu/ops/conv.c
backends_SOURCES += backends/cpu/dispatch.h
backends_SOURCES += backends/cpu/pool.h backends/cpu/pool.c
cpu_ops_SOURCES += backends/cpu/ops/pool.c
backends_SOURCES += backends/cpu/norm.h backends/cpu/norm.c
backends_SOURCES += backends/cpu/rows.h backends/cpu/rows.inc
backends_SOURCES += backends/cpu/rows_base.c
backends_SOURCES += backends/cpu/rows_avx2.c
backends_SOURCES += backends/cpu/rows_avx512.c
cpu_ops_SOURCES += backends/cpu/ops/softmax.c
cpu_ops_SOURCES += backends/cpu/ops/image_decoder.c
cpu_ops_SOURCES += backends/cpu/ops/networks.c
cpu_ops_SOURCES += backends/cpu/ops/inverse.c
cpu_ops_SOURCES += backends/cpu/ops/layer_norm.c
cpu_ops_SOURCES += backends/cpu/ops/group_norm.c

# The CUDA backend, a module of its own. One line per file, so that adding a kernel is one line.
cuda_files =
cuda_files += backends/cuda/cuda.h backends/cuda/cuda.c
cuda_files += backends/cuda/backend.c
cuda_files += backends/cuda/part.h backends/cuda/part.c
cuda_files += backends/cuda/tables.h backends/cuda/memory.c backends/cuda/stream.c backends/cuda/peer.c
cuda_files += backends/cuda/current.h backends/cuda/current.c
cuda_files += backends/cuda/local.h backends/cuda/local.c
cuda_files += backends/cuda/watch.h
cuda_files += backends/cuda/libraries.h backends/cuda/libraries.c
cuda_files += backends/cuda/wheels.h backends/cuda/wheels.c
cuda_files += backends/cuda/packing.h backends/cuda/packing.c
cuda_files += backends/cuda/number.cuh
cuda_files += backends/cuda/lane_exchange.cuh
cuda_files += backends/cuda/max_bytes.cuh
cuda_files += backends/cuda/tensor_core.cuh
cuda_files += backends/cuda/epilogue.h
cuda_files += backends/cuda/epilogue.cu
cuda_files += backends/cuda/activate.cuh
cuda_files += backends/cuda/depthwise.h
cuda_files += backends/cuda/depthwise.cu
cuda_files += backends/cuda/few_channels.h backends/cuda/few_channels_form.h backends/cuda/few_channels.cu
cuda_files += backends/cuda/few_pixels.h backends/cuda/few_pixels.cu
cuda_files += backends/cuda/pixel_product.h backends/cuda/pixel_product.cu
cuda_files += backends/cuda/qproduct.h backends/cuda/qproduct.cu
cuda_files += backends/cuda/qfinish.cuh
cuda_files += backends/cuda/qpack.h backends/cuda/qpack.cu
cuda_files += backends/cuda/qgemm_sizes.h
cuda_files += backends/cuda/qgemm_tile.cuh
cuda_files += backends/cuda/qgemm_store.cuh
cuda_files += backends/cuda/qgemm.h backends/cuda/qgemm.cu
cuda_files += backends/cuda/qdepthwise.h backends/cuda/qdepthwise.cu
cuda_files += backends/cuda/grouped_taps.h backends/cuda/grouped_taps.cu
cuda_files += backends/cuda/grouped_windows.h backends/cuda/grouped_windows.cu
cuda_files += backends/cuda/resize_planes.h backends/cuda/resize_planes.cu
cuda_files += backends/cuda/each.cuh
cuda_files += backends/cuda/order.cuh
cuda_files += backends/cuda/columns.h backends/cuda/columns.cu
cuda_files += backends/cuda/group_norm.h backends/cuda/group_norm.cu
cuda_files += backends/cuda/rnn.h backends/cuda/rnn_tiles.h backends/cuda/rnn_cell.cuh
cuda_files += backends/cuda/rnn_resident.cu
cuda_files += backends/cuda/rnn_steps.cu
cuda_files += backends/cuda/line.cuh
cuda_files += backends/cuda/indexed.cuh
cuda_files += backends/cuda/narrow.cuh
cuda_files += backends/cuda/dnn_conv.h backends/cuda/dnn_conv.c
cuda_files += backends/cuda/dnn_plans.h
cuda_files += backends/cuda/dnn_form.h
cuda_files += backends/cuda/dnn_graph.h backends/cuda/dnn_graph.c
cuda_files += backends/cuda/dnn_search.h backends/cuda/dnn_search.c
cuda_files += backends/cuda/dnn_profile.h backends/cuda/dnn_profile.c
cuda_files += backends/cuda/shared_objects.h backends/cuda/shared_objects.c
cuda_files += backends/cuda/cubin.h backends/cuda/cubin.c
cuda_files += backends/cuda/json.h backends/cuda/json.c
cuda_files += backends/cuda/lt_matmul.h backends/cuda/lt_matmul.c
cuda_files += backends/cuda/lt_search.h backends/cuda/lt_search.c
cuda_files += backends/cuda/lt_start.h backends/cuda/lt_start.c
cuda_files += backends/cuda/weight_pack.h backends/cuda/weight_pack.c
cuda_files += backends/cuda/weight_product.h backends/cuda/weight_choice.c
cuda_files += backends/cuda/weight_number.cuh backends/cuda/weight_tile.cuh
cuda_files += backends/cuda/weight_product_half.cu
cuda_files += backends/cuda/weight_product_bfloat.cu
cuda_files += backends/cuda/weight_product_float.cu
cuda_files += backends/shared/window.h backends/shared/window.c
cuda_files += backends/shared/tree.h backends/shared/tree.c
cuda_files += backends/shared/optimizer.h backends/shared/optimizer.c
cuda_files += backends/shared/reduce.h backends/shared/reduce.c
cuda_files += backends/shared/resize.h backends/shared/resize.c
cuda_files += backends/shared/attention.h backends/shared/attention.c
cuda_files += backends/shared/rotary.h backends/shared/rotary.c
cuda_files += backends/shared/slice.h backends/shared/slice.c
cuda_files += backends/shared/matmul.h backends/shared/matmul.c
cuda_files += backends/shared/weights.h backends/shared/weights.c
cuda_files += backends/shared/weight_rows.h backends/shared/weight_rows.c
cuda_files += backends/shared/quantised.h backends/shared/quantised.c
cuda_files += backends/shared/networks.h backends/shared/networks.c
cuda_files += backends/shared/norm.h backends/shared/norm.c
cuda_files += backends/shared/softmax.h backends/shared/softmax.c
cuda_files += backends/shared/grid_sample.h backends/shared/grid_sample.c
cuda_files += backends/shared/sampling.h backends/shared/sampling.c
cuda_files += backends/shared/cumulate.h backends/shared/cumulate.c
cuda_files += backends/shared/pad.h backends/shared/pad.c
cuda_files += backends/shared/rnn.h backends/shared/rnn.c
cuda_files += backends/shared/integer.h backends/shared/integer.c
cuda_ops_files =
cuda_ops_files += backends/cuda/ops/softmax.cu
cuda_ops_files += backends/cuda/ops/matmul.cu
cuda_ops_files += backends/cuda/ops/networks.cu
cuda_ops_files += backends/cuda/ops/layer_norm.cu
cuda_ops_files += backends/cuda/ops/group_norm.cu
cuda_ops_files += backends/cuda/ops/batch_norm.cu
cuda_ops_files += backends/cuda/ops/lrn.cu
cuda_ops_files += backends/cuda/ops/pool.cu
cuda_ops_files += backends/cuda/ops/conv.cu
cuda_ops_files += backends/cuda/ops/attention.cu
cuda_files += backends/cuda/walk.h
cuda_files += backends/cuda/pointwise_eval.h
cuda_files += backends/cuda/pointwise_language.h
cuda_files += backends/cuda/pointwise_source.h backends/cuda/pointwise_source.c
cuda_files += backends/cuda/generated.h backends/cuda/generated.c
cuda_files += backends/cuda/networks_source.h backends/cuda/networks_source.c
cuda_files += backends/cuda/nvrtc.h backends/cuda/nvrtc.c
cuda_files += backends/cuda/code.h backends/cuda/code.c
cuda_files += backends/cuda/copy.h
cuda_files += backends/cuda/copy.cu
cuda_files += backends/cuda/host_copy.h backends/cuda/host_copy.cu
cuda_files += backends/cuda/concat.h
cuda_files += backends/cuda/concat.cu
cuda_files += backends/cuda/attention.cuh
cuda_files += backends/cuda/attention_tile.cuh
cuda_files += backends/cuda/attention_rows.cuh
cuda_files += backends/cuda/attention_flash.cu
cuda_files += backends/cuda/attention_float.cu
cuda_files += backends/cuda/attention_split.cu
# Files with wgmma, which sm_90a alone has; their kernels are chosen on such devices only.
cuda_warpgroup_files = backends/cuda/warpgroup.cuh backends/cuda/bulk_copy.cuh backends/cuda/attention_warpgroup.cu backends/cuda/qgemm_warpgroup.h backends/cuda/qgemm_warpgroup.cu
cuda_files += backends/cuda/tensor_map.h backends/cuda/tensor_map.c
cuda_ops_files += backends/cuda/ops/pointwise.cu
cuda_ops_files += backends/cuda/ops/pointwise_group.cu
cuda_ops_files += backends/cuda/ops/cast.cu
cuda_ops_files += backends/cuda/ops/quantize.cu
cuda_ops_files += backends/cuda/ops/transpose.cu
cuda_ops_files += backends/cuda/ops/concat.cu
cuda_ops_files += backends/cuda/ops/slice.cu
cuda_ops_files += backends/cuda/ops/expand.cu
cuda_ops_files += backends/cuda/ops/pad.cu
cuda_ops_files += backends/cuda/ops/gather.cu
cuda_ops_files += backends/cuda/ops/scatter.cu
cuda_ops_files += backends/cuda/ops/reduce.cu
cuda_ops_files += backends/cuda/ops/where.cu
cuda_ops_files += backends/cuda/ops/shape.cu
cuda_ops_files += backends/cuda/ops/select.cu
cuda_ops_files += backends/cuda/ops/pow.cu
cuda_ops_files += backends/cuda/ops/dropout.cu
cuda_ops_files += backends/cuda/ops/arg.cu
cuda_ops_files += backends/cuda/ops/top_k.cu
cuda_ops_files += backends/cuda/ops/cumulate.cu
cuda_ops_files += backends/cuda/ops/cast_narrow.cu
cuda_ops_files += backends/cuda/ops/quantize_narrow.cu
cuda_ops_files += backends/cuda/ops/quantize_dynamic.cu
cuda_ops_files += backends/cuda/ops/rotary.cu
cuda_ops_files += backends/cuda/ops/resize.cu
cuda_ops_files += backends/cuda/ops/loss.cu
cuda_ops_files += backends/cuda/ops/rnn.cu
cuda_ops_files += backends/cuda/ops/sampling.cu
cuda_ops_files += backends/cuda/ops/grid_sample.cu
cuda_ops_files += backends/cuda/ops/integer.cu
cuda_ops_files += backends/cuda/ops/qconv.cu
cuda_ops_files += backends/cuda/ops/qmatmul.cu
cuda_ops_files += backends/cuda/ops/qpointwise.cu
cuda_ops_files += backends/cuda/ops/recurrent.cu
cuda_ops_files += backends/cuda/ops/einsum.cu
cuda_ops_files += backends/cuda/ops/boxes.cu
cuda_ops_files += backends/cuda/ops/ml.cu
cuda_ops_files += backends/cuda/ops/optimizer.cu
cuda_ops_files += backends/cuda/ops/matmul_exact.cu
cuda_ops_files += backends/cuda/ops/random.cu
cuda_ops_files += backends/cuda/ops/tree.cu
cuda_ops_files += backends/cuda/ops/signal.cu
cuda_ops_files += backends/cuda/ops/unique.cu
cuda_ops_files += backends/cuda/ops/wmatmul.c
cuda_ops_files += backends/cuda/ops/wgather.cu
# In the tarball whether or not this build has CUDA.
EXTRA_DIST += $(cuda_files) $(cuda_warpgroup_files) $(cuda_ops_files)
if CUDA
cuda_warpgroup_objects = $(patsubst %,cuda-objects/%.o,$(filter %.cu,$(cuda_warpgroup_files)))
cuda_objects = $(patsubst %,cuda-objects/%.o,$(filter %.c %.cu,$(cuda_files) $(cuda_ops_files))) $(cuda_warpgroup_objects)
cuda_gencode = $(CUDA_GENCODE)
$(cuda_warpgroup_objects): cuda_gencode = -gencode arch=compute_90a,code=sm_90a
cuda_includes = $(DEFS) -I. -I$(top_srcdir) -I$(top_srcdir)/include $(CUDA_CPPFLAGS)
graphrtmoduledir = $(libdir)/graphrt
graphrtmodule_DATA = libgraphrt-cuda.so
BUILT_SOURCES += cuda_kernels.inc cuda_pointwise_language.inc
cuda_kernels.inc: $(top_srcdir)/backends/sources.mk Makefile
	$(AM_V_GEN)for f in $(cuda_ops_files); do case $$f in *.cu|*.c) f=$$(basename $$f); echo "X($${f%.*})";; esac; done > $@.tmp && mv $@.tmp $@
# A header as the text of a string, for sources that are generated at run time.
cuda_pointwise_language.inc: $(top_srcdir)/backends/cuda/pointwise_language.h
	$(AM_V_GEN)sed -e 's/[\\"]/\\&/g' -e 's/.*/"&\\n"/' $< > $@.tmp && mv $@.tmp $@
cuda-objects/%.cu.o: $(top_srcdir)/%.cu
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(NVCC) -O3 -std=c++17 --extended-lambda $(cuda_gencode) $(CUDA_COMPRESSION) -Xcompiler -fPIC,-fvisibility=hidden,-Wall $(cuda_includes) -MD -MP -MF $@.d -c $< -o $@
cuda-objects/%.c.o: $(top_srcdir)/%.c cuda_kernels.inc cuda_pointwise_language.inc
	@$(MKDIR_P) $(@D)
	$(AM_V_CC)$(CC) -O2 -g -std=gnu11 $(WARNINGS) $(HARDEN_CFLAGS) -fPIC -fvisibility=hidden $(cuda_includes) -MD -MP -MF $@.d -c $< -o $@
libgraphrt-cuda.so: $(cuda_objects) libgraphrt.la
	$(AM_V_CCLD)$(CXX) -shared -o $@ $(cuda_objects) -L.libs -lgraphrt -L$(CUDA_DIR)/lib64 -lcudart_static -ldl -lrt -lpthread $(HARDEN_LDFLAGS) -Wl,--exclude-libs,ALL -Wl,-z,defs
# For tests that call parts of the module: the linker takes what they need and what that needs.
cuda-objects/module.a: $(cuda_objects)
	$(AM_V_GEN)rm -f $@ && $(AR) rcs $@ $(cuda_objects)
CLEANFILES += libgraphrt-cuda.so cuda_pointwise_language.inc
-include $(cuda_objects:=.d)
endif
cpu_ops_SOURCES += backends/cpu/ops/signal.c
cpu_ops_SOURCES += backends/cpu/ops/random.c
backends_SOURCES += backends/cpu/fft.h backends/cpu/fft.c
backends_SOURCES += backends/cpu/integer_rows.h backends/cpu/integer_rows.c
cpu_ops_SOURCES += backends/cpu/ops/resize.c
backends_SOURCES += backends/cpu/rnn_bytes.h backends/cpu/rnn_bytes.c
backends_SOURCES += backends/cpu/rnn_cell.h backends/cpu/rnn_cell.c
cpu_ops_SOURCES += backends/cpu/ops/rnn.c
cpu_ops_SOURCES += backends/cpu/ops/lrn.c
cpu_ops_SOURCES += backends/cpu/ops/arg.c
cpu_ops_SOURCES += backends/cpu/ops/tokenizer.c
cpu_ops_SOURCES += backends/cpu/ops/top_k.c
cpu_ops_SOURCES += backends/cpu/ops/unique.c
cpu_ops_SOURCES += backends/cpu/ops/cumulate.c
cpu_ops_SOURCES += backends/cpu/ops/einsum.c
cpu_ops_SOURCES += backends/cpu/ops/grid_sample.c
cpu_ops_SOURCES += backends/cpu/ops/boxes.c
backends_SOURCES += backends/shared/order.h
backends_SOURCES += backends/shared/random.h
backends_SOURCES += backends/shared/twister.h
backends_SOURCES += backends/shared/tree.h backends/shared/tree.c
cpu_ops_SOURCES += backends/cpu/ops/integer.c
cpu_ops_SOURCES += backends/cpu/ops/sampling.c
cpu_ops_SOURCES += backends/cpu/ops/optimizer.c
backends_SOURCES += backends/shared/optimizer.h backends/shared/optimizer.c
backends_SOURCES += backends/cpu/softmax.h backends/cpu/softmax.c

# oneDNN behind the only C++, which catches what it throws. A module of its own: it needs nothing of the library, and the library always
# comes with it. What is linked to everything has the same in it.
onednn_calls = backends/cpu/dnnl_calls.cc
onednn_opened_SOURCES = backends/cpu/dnnl_opened.c
onednn_linked_SOURCES = backends/cpu/dnnl_linked.c $(onednn_calls)
onednnmoduledir = $(libdir)/graphrt
onednnmodule_DATA = libgraphrt-onednn.so
onednn_objects = onednn-objects/$(onednn_calls).o
onednn-objects/%.cc.o: $(top_srcdir)/%.cc
	@$(MKDIR_P) $(@D)
	$(AM_V_CXX)$(CXX) $(DEFS) $(AM_CPPFLAGS) $(CPPFLAGS) $(AM_CXXFLAGS) $(CXXFLAGS) -fPIC -MD -MP -MF $@.d -c $< -o $@
libgraphrt-onednn.so: $(onednn_objects)
	$(AM_V_CXXLD)$(CXX) -shared -o $@ $(onednn_objects) $(AM_CXXFLAGS) $(CXXFLAGS) $(DNNL_LIBS) $(HARDEN_LDFLAGS) $(LDFLAGS) -Wl,-z,defs
CLEANFILES += libgraphrt-onednn.so
-include $(onednn_objects:=.d)

# Decoders of images, a module of its own: see backends/image/image.h. It is linked to the library only to tell which copy it is of.
image_files =
image_files += backends/image/image.h backends/image/module.c
image_files += backends/image/formats.h backends/image/bmp.c
image_files += backends/image/jpeg.c
image_files += backends/image/jpeg2000.c
image_files += backends/image/png.c
image_files += backends/image/pnm.c
image_files += backends/image/tiff.c
image_files += backends/image/webp.c
EXTRA_DIST += $(image_files)
if IMAGE
image_objects = $(patsubst %,image-objects/%.o,$(filter %.c,$(image_files)))
imagemoduledir = $(libdir)/graphrt
imagemodule_DATA = libgraphrt-image.so
image-objects/%.c.o: $(top_srcdir)/%.c
	@$(MKDIR_P) $(@D)
	$(AM_V_CC)$(CC) $(DEFS) $(AM_CPPFLAGS) $(IMAGE_CFLAGS) $(CPPFLAGS) $(AM_CFLAGS) $(CFLAGS) -fPIC -MD -MP -MF $@.d -c $< -o $@
libgraphrt-image.so: $(image_objects) libgraphrt.la
	$(AM_V_CCLD)$(CC) -shared -o $@ $(image_objects) $(AM_CFLAGS) $(CFLAGS) -L.libs -Wl,--no-as-needed -lgraphrt $(IMAGE_LIBS) $(AM_LDFLAGS) $(LDFLAGS)
CLEANFILES += libgraphrt-image.so
-include $(image_objects:=.d)
endif
