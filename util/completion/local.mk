# Completion for bash: one file, installed under each command's name.
completiondir = $(datadir)/bash-completion/completions
completions = $(addprefix %reldir%/,mcastcoll-cp mcastcoll-doctor mcastcoll-gateway mcastcoll-perf mcastcoll-sim mcastcoll-topo mcastcoll-tune)
nodist_completion_DATA = $(completions)
$(completions): %reldir%/mcastcoll.bash
	$(AM_V_GEN)$(MKDIR_P) $(@D) && cp $(srcdir)/%reldir%/mcastcoll.bash $@
CLEANFILES += $(completions)
TESTS += %reldir%/test_completion.sh
EXTRA_DIST += %reldir%/mcastcoll.bash %reldir%/test_completion.sh
