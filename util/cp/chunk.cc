#include "cp/chunk.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "wire/bytes.h"

namespace mcastcoll::cp {
namespace {

constexpr std::chrono::seconds kTimeout{10};

constexpr std::size_t kHeaderBytes = 16;
constexpr std::size_t kHeadBytes = 1 + 8 + 8;  // of a record; its bytes follow
constexpr std::size_t kMin = 4096;             // with less room the chunk counts as full

std::byte* at(std::string& bytes, std::size_t offset) {
    return reinterpret_cast<std::byte*>(bytes.data()) + offset;
}

std::uint64_t number_at(std::string_view bytes, std::size_t offset) {
    return wire::get<std::uint64_t>(reinterpret_cast<const std::byte*>(bytes.data()) + offset);
}

}  // namespace

std::uint64_t number_of(const std::string& chunk) {
    return number_at(chunk, 0);
}

std::uint64_t size_ahead(const std::string& chunk) {
    return number_at(chunk, 8);
}

void set_size_ahead(std::string& chunk, std::uint64_t size) {
    wire::put(at(chunk, 8), size);
}

Packer::Packer(Chunk chunk, std::uint64_t number) : chunk_(std::move(chunk)) {
    chunk_->assign(kHeaderBytes, '\0');
    wire::put(at(*chunk_, 0), number);
}

std::size_t Packer::room() const {
    const std::size_t used = chunk_->size() + 3 * kHeadBytes;
    return used + kMin > kChunkBytes ? 0 : kChunkBytes - used;
}

void Packer::head(Act act, std::uint64_t number, std::uint64_t second) {
    const std::size_t begin = chunk_->size();
    chunk_->resize(begin + kHeadBytes);
    (*chunk_)[begin] = static_cast<char>(act);
    wire::put(at(*chunk_, begin + 1), number);
    wire::put(at(*chunk_, begin + 9), second);
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

Unpacker::Unpacker(std::string_view chunk) : rest_(chunk.substr(std::min(chunk.size(), kHeaderBytes))) {}

Result<std::optional<Record>> Unpacker::next() {
    if (rest_.empty()) return std::optional<Record>();
    if (rest_.size() < kHeadBytes || static_cast<unsigned char>(rest_[0]) > static_cast<unsigned>(Act::end))
        return Error{EBADMSG, "invalid data instead of a chunk"};
    Record record;
    record.act = static_cast<Act>(rest_[0]);
    record.number = number_at(rest_, 1);
    const std::uint64_t second = number_at(rest_, 9);
    rest_.remove_prefix(kHeadBytes);
    if (record.act == Act::begin) {
        record.position = second;
        return std::optional(record);
    }
    if (second > rest_.size()) return Error{EBADMSG, "a truncated chunk"};
    record.bytes = rest_.substr(0, second);
    rest_.remove_prefix(second);
    return std::optional(record);
}

Chunk Pool::take() {
    std::unique_ptr<std::string> buffer;
    {
        std::unique_lock lock(mutex_);
        // A disk may stand still for long, but this thread must keep receiving: the peers would treat the
        // host as failed. So after kTimeout one more buffer is used.
        one_is_back_.wait_for(lock, kTimeout, [this] { return used_ < max_; });
        ++used_;
        if (!free_.empty()) {
            buffer = std::move(free_.front());
            free_.pop_front();
        }
    }
    if (buffer == nullptr) {
        buffer = std::make_unique<std::string>();
        buffer->reserve(kChunkBytes);
    }
    return {buffer.release(), [pool = shared_from_this()](std::string* back) {
                const std::lock_guard lock(pool->mutex_);
                pool->free_.emplace_back(back);
                --pool->used_;
                pool->one_is_back_.notify_one();
            }};
}

void Pool::open_up() {
    const std::lock_guard lock(mutex_);
    max_ = SIZE_MAX;
    one_is_back_.notify_all();
}

void Queue::put(Chunk chunk) {
    const std::lock_guard lock(mutex_);
    chunks_.push_back(std::move(chunk));
    changed_.notify_one();
}

void Queue::close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_one();
}

Chunk Queue::take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || !chunks_.empty(); });
    if (chunks_.empty()) return nullptr;
    Chunk chunk = std::move(chunks_.front());
    chunks_.pop_front();
    return chunk;
}

}  // namespace mcastcoll::cp
