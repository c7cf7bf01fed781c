# Manual pages, written with scdoc; without it they are not built.
MAN_SOURCES =
MAN_SOURCES += docs/man/graphc.1.scd
MAN_SOURCES += docs/man/graphrun.1.scd
EXTRA_DIST += $(MAN_SOURCES)
EXTRA_DIST += docs/json.md
if HAVE_SCDOC
man1_MANS = $(MAN_SOURCES:.scd=)
CLEANFILES += $(man1_MANS)
endif
docs/man/%.1: $(top_srcdir)/docs/man/%.1.scd
	$(AM_V_GEN)$(MKDIR_P) docs/man && $(SCDOC) < $< > $@.tmp && mv $@.tmp $@
# docs
EXTRA_DIST += docs/guide.md docs/decisions/rooms.md docs/decisions/dependencies.md
