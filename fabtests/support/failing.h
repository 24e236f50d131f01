// Makes the nth system or library call of the provider fail, to test its error handling: sockets,
// descriptors, mappings, threads, memory. In a program that links this file, these functions of the C library
// and operator new are replaced; they behave as usual unless fail_call() was called. Calls made by other code
// (libfabric, the test) never fail.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mcastcoll::fabtest {

enum class Fails : std::uint8_t {
    once,    // only the nth call
    onward,  // the nth call and every later one
};

// Starts to count calls; the first one is number 1.
void fail_call(std::uint64_t nth, Fails how);
// Stops failing calls. Returns how many calls failed since fail_call().
std::uint64_t stop_failing();
// The name of the last function that failed.
const char* failed_call();
// Number of descriptors that the provider has opened and not closed.
std::size_t descriptors_in_use();
// Number of operator new's allocations in use, made by any code.
std::int64_t pieces_of_memory();

}  // namespace mcastcoll::fabtest
