// Makes the nth call of the system that the provider makes fail, to see how it takes that: sockets,
// descriptors, mappings, threads' and other memory. A program that links this has these functions of the C
// library and operator new replaced; they do as ever unless told otherwise. Calls of others (libfabric, the
// test) never fail.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mcastcoll::fabtest {

enum class Fails : std::uint8_t {
    once,    // the nth call alone
    onward,  // and all after it
};

// From now on, counting from 1.
void fail_call(std::uint64_t nth, Fails how);
// Everything works again. Returns how many calls failed since fail_call().
std::uint64_t stop_failing();
// The name of the last function that failed.
const char* failed_call();
// Descriptors that the provider has made and not closed.
std::size_t descriptors_in_use();
// Pieces of memory in use that came from operator new, whoever asked for them.
std::int64_t pieces_of_memory();

}  // namespace mcastcoll::fabtest
