// Included first in test_accelerator: compiles for Open MPI 4.1 as if it were built with CUDA.
#include "ompi_config.h"
#if !__has_include("opal/mca/accelerator/base/base.h")
#undef OPAL_CUDA_SUPPORT
#define OPAL_CUDA_SUPPORT 1
#endif
