# Manual pages, written with scdoc; without it they are not built.
man_scd =
man_scd += docs/man/graphc.1.scd
man_scd += docs/man/graphrun.1.scd
EXTRA_DIST += $(man_scd)
EXTRA_DIST += docs/json.md
if HAVE_SCDOC
man1_MANS = $(man_scd:.scd=)
CLEANFILES += $(man1_MANS)
endif
docs/man/%.1: $(top_srcdir)/docs/man/%.1.scd
	$(AM_V_GEN)$(MKDIR_P) docs/man && $(SCDOC) < $< > $@.tmp && mv $@.tmp $@
# docs
EXTRA_DIST += docs/cuda.md docs/guide.md docs/decisions/cpu-math.md docs/decisions/dependencies.md docs/decisions/generated-kernels.md docs/decisions/import.md
EXTRA_DIST += docs/cuda.md docs/guide.md docs/decisions/choices.md docs/decisions/cpu-math.md docs/decisions/dependencies.md docs/decisions/import.md
EXTRA_DIST += docs/decisions/packing.md docs/decisions/passes.md docs/decisions/rooms.md docs/decisions/sessions.md docs/decisions/shapes.md
EXTRA_DIST += docs/cuda.md docs/guide.md docs/decisions/cpu-math.md docs/decisions/dependencies.md docs/decisions/import.md
EXTRA_DIST += docs/decisions/packing.md docs/decisions/passes.md docs/decisions/rooms.md docs/decisions/sessions.md docs/decisions/shapes.md docs/decisions/tuning.md
