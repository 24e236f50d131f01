// A simulated accelerator for Open MPI 5 with the memory of mpi_device.h. The component and Open MPI itself
// treat such buffers like GPU buffers.
//
// Open MPI creates streams and events, which do nothing here: every copy is complete when the call returns.

#include <stdio.h>

#include "mpi_device.h"
#include "ompi_config.h"
#include "opal/constants.h"
#include "opal/mca/accelerator/accelerator.h"

static int check_addr(const void* addr, int* dev_id, uint64_t* flags) {
    *flags = 0;
    *dev_id = is_device(addr) ? 0 : MCA_ACCELERATOR_NO_DEVICE_ID;
    return is_device(addr);
}

static int create_stream(int dev_id, opal_accelerator_stream_t** stream) {
    (void)dev_id;
    *stream = OBJ_NEW(opal_accelerator_stream_t);
    return NULL != *stream ? OPAL_SUCCESS : OPAL_ERR_OUT_OF_RESOURCE;
}

static int create_event(int dev_id, opal_accelerator_event_t** event) {
    (void)dev_id;
    *event = OBJ_NEW(opal_accelerator_event_t);
    return NULL != *event ? OPAL_SUCCESS : OPAL_ERR_OUT_OF_RESOURCE;
}

static int record_event(int dev_id, opal_accelerator_event_t* event, opal_accelerator_stream_t* stream) {
    (void)dev_id, (void)event, (void)stream;
    return OPAL_SUCCESS;
}

static int query_event(int dev_id, opal_accelerator_event_t* event) {
    (void)dev_id, (void)event;
    return OPAL_SUCCESS;
}

static int mem_copy(int to_id, int from_id, void* to, const void* from, size_t size,
                    opal_accelerator_transfer_type_t type) {
    (void)to_id, (void)from_id, (void)type;
    device_copy(to, from, size);
    return OPAL_SUCCESS;
}

static int mem_copy_async(int to_id, int from_id, void* to, const void* from, size_t size,
                          opal_accelerator_stream_t* stream, opal_accelerator_transfer_type_t type) {
    (void)stream;
    return mem_copy(to_id, from_id, to, from, size, type);
}

static int mem_alloc(int dev_id, void** ptr, size_t size) {
    (void)dev_id, (void)ptr, (void)size;
    return OPAL_ERR_NOT_SUPPORTED;  // the program allocates device memory
}

static int mem_release(int dev_id, void* ptr) {
    (void)dev_id, (void)ptr;
    return OPAL_ERR_NOT_SUPPORTED;
}

static int get_address_range(int dev_id, const void* ptr, void** base, size_t* size) {
    (void)dev_id, (void)ptr;
    *base = (void*)MCC_DEVICE_FIRST;
    *size = MCC_DEVICE_BYTES;
    return OPAL_SUCCESS;
}

static int host_register(int dev_id, void* ptr, size_t size) {
    (void)dev_id, (void)ptr, (void)size;
    return OPAL_SUCCESS;
}

static int host_unregister(int dev_id, void* ptr) {
    (void)dev_id, (void)ptr;
    return OPAL_SUCCESS;
}

static int get_device(int* dev_id) {
    *dev_id = 0;
    return OPAL_SUCCESS;
}

static int get_device_pci_attr(int dev_id, opal_accelerator_pci_attr_t* pci_attr) {
    (void)dev_id, (void)pci_attr;
    return OPAL_ERR_NOT_SUPPORTED;
}

static int device_can_access_peer(int* access, int dev1, int dev2) {
    *access = dev1 == dev2;
    return OPAL_SUCCESS;
}

static int get_buffer_id(int dev_id, const void* addr, opal_accelerator_buffer_id_t* buf_id) {
    (void)dev_id;
    *buf_id = (uintptr_t)addr;
    return OPAL_SUCCESS;
}

static opal_accelerator_base_module_t* accelerator_init(void) {
    static opal_accelerator_base_module_t module = {.check_addr = check_addr,
                                                    .create_stream = create_stream,
                                                    .create_event = create_event,
                                                    .record_event = record_event,
                                                    .query_event = query_event,
                                                    .mem_copy_async = mem_copy_async,
                                                    .mem_copy = mem_copy,
                                                    .mem_move = mem_copy,
                                                    .mem_alloc = mem_alloc,
                                                    .mem_release = mem_release,
                                                    .get_address_range = get_address_range,
                                                    .host_register = host_register,
                                                    .host_unregister = host_unregister,
                                                    .get_device = get_device,
                                                    .get_device_pci_attr = get_device_pci_attr,
                                                    .device_can_access_peer = device_can_access_peer,
                                                    .get_buffer_id = get_buffer_id};
    return &module;
}

static void accelerator_finalize(opal_accelerator_base_module_t* module) {
    (void)module;
}

OMPI_DECLSPEC extern opal_accelerator_base_component_t mca_accelerator_mccfake_component;
opal_accelerator_base_component_t mca_accelerator_mccfake_component = {
    .base_version =
        {
            OPAL_ACCELERATOR_BASE_VERSION_1_0_0,
            .mca_component_name = "mccfake",
            MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION),
        },
    .base_data = {.param_field = MCA_BASE_METADATA_PARAM_CHECKPOINT},
    .accelerator_init = accelerator_init,
    .accelerator_finalize = accelerator_finalize,
};
