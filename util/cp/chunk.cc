#include "cp/chunk.h"

#include "wire/bytes.h"

namespace mcastcoll::cp {

std::uint64_t number_at(std::string_view bytes, std::size_t offset) {
    return wire::get<std::uint64_t>(reinterpret_cast<const std::byte*>(bytes.data()) + offset);
}

void put_number(std::string& bytes, std::size_t offset, std::uint64_t number) {
    wire::put(reinterpret_cast<std::byte*>(bytes.data()) + offset, number);
}

std::uint64_t number_of(const std::string& chunk) {
    return number_at(chunk, 0);
}

std::uint64_t size_ahead(const std::string& chunk) {
    return number_at(chunk, 8);
}

void set_size_ahead(std::string& chunk, std::uint64_t size) {
    put_number(chunk, 8, size);
}

}  // namespace mcastcoll::cp
