# What the Open MPI component and the interposer share: each compiles it for its own MPI's headers.
mcc_mpi_core = \
	%reldir%/blocks.c \
	%reldir%/plan.c \
	%reldir%/plan.h \
	%reldir%/provider.c \
	%reldir%/provider.h \
	%reldir%/reduce.c \
	%reldir%/types.c \
	%reldir%/types.h
EXTRA_DIST += mpi/README.md
