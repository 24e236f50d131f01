# What the Open MPI component and the interposer share: each compiles it for its own MPI's headers.
mcc_mpi_core = \
	%reldir%/collectives.c \
	%reldir%/collectives.h \
	%reldir%/plan.c \
	%reldir%/plan.h \
	%reldir%/provider.c \
	%reldir%/provider.h \
	%reldir%/stand_in.c \
	%reldir%/stand_in.h
EXTRA_DIST += mpi/README.md
