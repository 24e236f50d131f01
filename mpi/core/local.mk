# Shared by the Open MPI component and the interposer. Each compiles these files with the headers of its own MPI.
mcc_mpi_core = \
	%reldir%/addresses.c \
	%reldir%/addresses.h \
	%reldir%/collectives.c \
	%reldir%/collectives.h \
	%reldir%/descriptors.c \
	%reldir%/descriptors.h \
	%reldir%/layout.h \
	%reldir%/prepared_call.c \
	%reldir%/prepared_call.h \
	%reldir%/probe.c \
	%reldir%/probe.h \
	%reldir%/progress_thread.c \
	%reldir%/progress_thread.h \
	%reldir%/provider.c \
	%reldir%/provider.h \
	%reldir%/secret.c \
	%reldir%/secret.h \
	%reldir%/settings.c \
	%reldir%/settings.h
EXTRA_DIST += mpi/README.md
