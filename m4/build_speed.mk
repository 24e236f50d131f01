# Rules for the measures of build_speed.m4.

# The headers of base/standard.h, compiled once with optimisation and once without: g++ selects the suitable one, relative to its
# working directory. A compiler without compiled headers, or a single file made in a fresh tree, reads the text.
if PRECOMPILE
optimised_headers = base/standard.h.gch/optimised
standard_headers = $(optimised_headers) base/standard.h.gch/test
BUILT_SOURCES += $(standard_headers)
CLEANFILES += $(standard_headers)
$(standard_headers): prov/mcastcoll/base/standard.h config.status
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	$(CXX) $(DEFS) $(CPPFLAGS) $(FMT_CFLAGS) $(MCC_CXXFLAGS) $(MCC_SANITIZE) $(MCC_SPEED) $(CXXFLAGS) -pthread -fPIC -DPIC \
		-x c++-header -o base/$(@F).tmp $< && \
	mv base/$(@F).tmp $@
endif

# The files of a folder as one. A folder adds its files to mcc_parts and its all.cc to mcc_rooms; names in unnamed namespaces must
# then be unique in the folder. The files of a unit test, which share no folder, are its `parts`.
mcc_parts =
mcc_rooms =
$(mcc_rooms): Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	for part in $(filter %.cc,$(or $(parts),$(filter $(@D)/%,$(mcc_parts)))); do echo "#include \"$$part\""; done >$@.tmp && \
	mv $@.tmp $@
BUILT_SOURCES += $(mcc_rooms)
CLEANFILES += $(mcc_rooms)
EXTRA_DIST += $(mcc_parts)
