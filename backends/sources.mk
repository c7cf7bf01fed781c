backends_SOURCES = \
	backends/backend.h backends/backend.c backends/kernel.h backends/kernel.c \
	backends/cpu/cpu.h backends/cpu/cpu.c \
	backends/null/null.c
# One line per file, so that adding a kernel is one line.
cpu_ops_SOURCES =
