#include "cp/packer.h"

#include <utility>

namespace mcastcoll::cp {
namespace {

constexpr std::size_t kMin = 4096;  // with less room the chunk counts as full

}  // namespace

Packer::Packer(Chunk chunk, std::uint64_t number) : chunk_(std::move(chunk)) {
    chunk_->assign(kHeaderBytes, '\0');
    put_number(*chunk_, 0, number);
}

std::size_t Packer::room() const {
    const std::size_t used = chunk_->size() + 3 * kHeadBytes;
    return used + kMin > kChunkBytes ? 0 : kChunkBytes - used;
}

void Packer::head(Act act, std::uint64_t number, std::uint64_t second) {
    const std::size_t begin = chunk_->size();
    chunk_->resize(begin + kHeadBytes);
    (*chunk_)[begin] = static_cast<char>(act);
    put_number(*chunk_, begin + 1, number);
    put_number(*chunk_, begin + 9, second);
}

void Packer::begin(std::uint64_t entry, std::uint64_t position) {
    head(Act::begin, entry, position);
}

void Packer::end(Drop drop, std::string_view digest) {
    head(Act::end, static_cast<std::uint64_t>(drop), digest.size());
    chunk_->append(digest);
}

void Packer::text(std::string_view bytes) {
    head(Act::text, 0, bytes.size());
    chunk_->append(bytes);
}

std::span<char> Packer::data(std::uint64_t offset, std::size_t size) {
    head(Act::data, offset, size);
    chunk_->resize(chunk_->size() + size);
    return {chunk_->data() + chunk_->size() - size, size};
}

}  // namespace mcastcoll::cp
