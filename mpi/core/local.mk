# What the Open MPI component and the interposer share: each compiles it for its own MPI's headers.
mcc_mpi_core = \
	%reldir%/agree.h \
	%reldir%/blocks.c \
	%reldir%/collectives.c \
	%reldir%/collectives.h \
	%reldir%/join.c \
	%reldir%/join.h \
	%reldir%/plan.c \
	%reldir%/plan.h \
	%reldir%/provider.c \
	%reldir%/provider.h \
	%reldir%/reduce.c \
	%reldir%/types.c \
	%reldir%/types.h \
	%reldir%/wait.c \
	%reldir%/wait.h
EXTRA_DIST += mpi/README.md
