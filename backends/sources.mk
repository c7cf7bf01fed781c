backends_SOURCES = \
	backends/backend.h backends/backend.c backends/kernel.h backends/kernel.c \
	backends/cpu/cpu.h backends/cpu/cpu.c \
	backends/null/null.c
backends_SOURCES += backends/cpu/act.h
backends_SOURCES += backends/cpu/gemm.h backends/cpu/gemm.c backends/cpu/gemm_kernel.h backends/cpu/gemm_c.c backends/cpu/gemm_avx2.c
backends_SOURCES += backends/cpu/dnnl.h backends/cpu/dnnl.c backends/cpu/dnnl_compat.h
backends_SOURCES += backends/cpu/element.h
backends_SOURCES += backends/cpu/attention.h backends/cpu/attention_exact.c
backends_SOURCES += backends/cpu/threads.h
# One line per file, so that adding a kernel is one line.
cpu_ops_SOURCES =
backends_SOURCES += backends/cpu/isa.h backends/cpu/vmath.h backends/cpu/pointwise_loops.h
backends_SOURCES += backends/cpu/pointwise_template.inc backends/cpu/pointwise_f32.inc backends/cpu/pointwise_typed.c
backends_SOURCES += backends/cpu/pointwise_f32_base.c backends/cpu/pointwise_f32_avx2.c backends/cpu/pointwise_f32_avx512.c
backends_SOURCES += backends/cpu/pointwise_walk.h backends/cpu/pointwise_walk.c
cpu_ops_SOURCES += backends/cpu/ops/pointwise.c backends/cpu/ops/pointwise_group.c backends/cpu/ops/where.c backends/cpu/ops/pow.c
cpu_ops_SOURCES += backends/cpu/ops/cast.c
backends_SOURCES += backends/cpu/convert.h backends/cpu/convert.c
cpu_ops_SOURCES += backends/cpu/ops/loss.c
cpu_ops_SOURCES += backends/cpu/ops/attention.c
cpu_ops_SOURCES += backends/cpu/ops/rotary.c
cpu_ops_SOURCES += backends/cpu/ops/recurrent.c
cpu_ops_SOURCES += backends/cpu/ops/sequence.c
