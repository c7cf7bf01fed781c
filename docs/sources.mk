# Manual pages, written with scdoc; without it they are not built.
man_scd =
man_scd += docs/man/graphc.1.scd
man_scd += docs/man/graphrun.1.scd
EXTRA_DIST += $(man_scd)
if HAVE_SCDOC
man1_MANS = $(man_scd:.scd=)
CLEANFILES += $(man1_MANS)
endif
docs/man/%.1: $(top_srcdir)/docs/man/%.1.scd
	$(AM_V_GEN)$(MKDIR_P) docs/man && $(SCDOC) < $< > $@.tmp && mv $@.tmp $@
# In the places that the links between them expect.
nobase_dist_doc_DATA = README.md CHANGELOG.md LICENSE docs/guide.md docs/cuda.md docs/json.md docs/models.md
nobase_dist_doc_DATA += docs/decisions/choices.md docs/decisions/copies.md docs/decisions/cpu-math.md docs/decisions/cuda.md docs/decisions/dependencies.md
nobase_dist_doc_DATA += docs/decisions/generated-kernels.md docs/decisions/import.md docs/decisions/packing.md docs/decisions/passes.md
nobase_dist_doc_DATA += docs/decisions/rooms.md docs/decisions/sessions.md docs/decisions/shapes.md docs/decisions/tuning.md
nobase_dist_doc_DATA += examples/digits.c examples/dynamic_shapes.c examples/npy.c examples/npy.h examples/threads.c
