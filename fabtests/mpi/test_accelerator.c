// Tests whether the component recognises accelerator memory. The test replaces the selected accelerator of
// Open MPI 5.0, or CUDA of Open MPI 4.1: with_cuda.h compiles the component as for a build with CUDA.
#include <criterion/criterion.h>

#include "coll_mcastcoll.h"

MccComponent mcc_component;

static int on_device[4], in_host[4];
static unsigned queries;

#if __has_include("opal/mca/accelerator/base/base.h")

static int check(const void* at, int* device, uint64_t* flags) {
    (void)device, (void)flags;
    ++queries;
    return on_device == at;
}

static void set_up(void) {
    opal_accelerator.check_addr = check;
    snprintf(opal_accelerator_base_selected_component.base_version.mca_component_name,
             sizeof(opal_accelerator_base_selected_component.base_version.mca_component_name), "gpu");
}

static void take_away(void) {
    snprintf(opal_accelerator_base_selected_component.base_version.mca_component_name,
             sizeof(opal_accelerator_base_selected_component.base_version.mca_component_name), "null");
}

#else

bool opal_cuda_check_bufs(char* first, char* second) {
    ++queries;
    return (char*)on_device == first || (char*)on_device == second;
}

static void set_up(void) {
    opal_cuda_support = true;
}

static void take_away(void) {
    opal_cuda_support = false;
}

#endif

static const uint8_t* contiguous(const int* at) {
    const MccLayout layout = {.base = at, .count = 4, .type = MPI_INT};
    return mcc_contiguous(&layout);
}

Test(accelerator, its_memory_is_not_contiguous) {
    set_up();
    mcc_component.has_accelerator = mcc_has_accelerator();
    cr_assert(mcc_component.has_accelerator);
    cr_assert(mcc_is_device(on_device) && !mcc_is_device(in_host));
    cr_assert_null(contiguous(on_device));
    cr_assert_eq(contiguous(in_host), (const uint8_t*)in_host);
    cr_assert_eq(queries, 4);
}

Test(accelerator, without_one_no_query_is_made) {
    take_away();
    mcc_component.has_accelerator = mcc_has_accelerator();
    cr_assert(!mcc_component.has_accelerator);
    cr_assert_eq(contiguous(on_device), (const uint8_t*)on_device);
    cr_assert_eq(queries, 0);
}
