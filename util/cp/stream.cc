#include "cp/stream.h"

#include <fmt/format.h>

#include <algorithm>

#include "hostset/reader.h"
#include "hostset/writer.h"
#include "wire/bytes.h"

namespace mcastcoll::cp {
namespace {

constexpr unsigned kAgree_s = 60;       // a failing join takes half of that
constexpr std::uint64_t kFailures = 5;  // after which a host is given up
constexpr std::size_t kHistory = 8;     // chunks kept; no host is farther behind than kAhead and a window
constexpr std::size_t kMaxChunk = 2 * kChunkBytes;

}  // namespace

Stream::Stream(hostset::HostSet& host_set, Channel* channel, std::shared_ptr<Pool> pool, Callbacks callbacks)
    : host_set_(host_set), channel_(channel), pool_(std::move(pool)), callbacks_(std::move(callbacks)) {}

Result<void> Stream::run(Queue* chunks) {
    chunks_ = chunks;
    for (;;) {
        const auto agreed = agree();
        if (!agreed) return agreed.error();
        if (agreed.value().done) return {};
        pass(agreed.value());
    }
}

Result<Stream::Agreed> Stream::agree() {
    hostset::Writer mine;
    mine.number(done_).number(next_).number(fetched_ - history_.size()).number(failures_).text(failure_);
    mine.text(channel_ != nullptr ? channel_->name() : "");
    const std::vector<std::uint32_t> before = host_set_.present();
    const auto all = host_set_.exchange(mine.take(), kAgree_s);
    if (!all) return all.error();
    for (const std::uint32_t rank : before)
        if (host_set_.is_lost(rank)) callbacks_.lost(rank, host_set_.loss_reason(rank));
    Agreed agreed;
    std::uint64_t oldest = 0;
    for (const std::uint32_t rank : host_set_.present()) {
        hostset::Reader reader(*all.value()[rank]);
        const bool done = reader.number() != 0;
        const std::uint64_t next = reader.number(), first = reader.number(), failures = reader.number();
        const std::string failure(reader.text()), name(reader.text());
        if (rank == 0) oldest = first;
        std::string why;
        if (failures >= kFailures) why = failure;
        if (next < oldest) why = "is too far behind the other hosts";
        if (!reader.ok() || (name.empty() && rank != 0)) why = "does not take part";
        if (!why.empty()) {
            callbacks_.lost(rank, why);
            if (rank == 0 || rank == host_set_.rank()) return Error{ECANCELED, why};
            continue;
        }
        agreed.done = agreed.done && done;
        agreed.broken = agreed.broken || failures > 0;
        agreed.from = std::min(agreed.from, next);
        agreed.names.push_back(name);
    }
    return agreed;
}

void Stream::pass(const Agreed& agreed) {
    if (agreed.names.size() == 1) {
        while (const Chunk chunk = fetch(next_)) consume(chunk);
        done_ = true;
        return;
    }
    Result<void> passed;
    if (agreed.broken || !channel_->is_group_of(agreed.names))
        passed = channel_->form(agreed.names, host_set_.comm_key(channel_->attempts()));
    if (passed) passed = broadcast_all(agreed.from);
    // The provider owns the buffers until the broadcasts end; after a failure, every broadcast ends.
    for (Flight& flight : flights_) channel_->wait(flight.ticket);
    flights_.clear();
    sizes_.clear();
    if (passed) {
        done_ = true;
        failures_ = 0;
    } else {
        ++failures_;
        failure_ = passed.error().message;
    }
}

Result<void> Stream::broadcast_all(std::uint64_t from) {
    if (const auto sent = send_sizes(from); !sent) return sent;
    for (std::uint64_t number = from;;) {
        while (flights_.size() < kAhead && !sizes_.empty() && sizes_.front() != 0)
            if (const auto posted = post(number++); !posted) return posted;
        if (flights_.empty()) return {};
        if (const auto settled = settle(); !settled) return settled;
    }
}

// Broadcasts the sizes of the first chunks; each chunk then has the size of a later one.
Result<void> Stream::send_sizes(std::uint64_t from) {
    std::string text(kAhead * sizeof(std::uint64_t), '\0');
    for (std::size_t i = 0; i < kAhead && host_set_.is_head(); ++i) {
        const Chunk chunk = fetch(from + i);
        wire::put(reinterpret_cast<std::byte*>(&text[i * sizeof(std::uint64_t)]),
                  std::uint64_t{chunk != nullptr ? chunk->size() : 0});
    }
    Channel::Ticket ticket;
    if (const auto started = channel_->start(text.data(), text.size(), ticket); !started) return started;
    channel_->wait(ticket);
    if (ticket.error != 0) return Channel::failure(ticket);
    for (std::size_t i = 0; i < kAhead; ++i)
        sizes_.push_back(
            wire::get<std::uint64_t>(reinterpret_cast<const std::byte*>(&text[i * sizeof(std::uint64_t)])));
    return {};
}

Result<void> Stream::post(std::uint64_t number) {
    const std::uint64_t size = sizes_.front();
    sizes_.pop_front();
    if (size > kMaxChunk) return Error{EBADMSG, "a chunk is too long"};
    Chunk chunk = host_set_.is_head() ? fetch(number) : pool_->take();
    if (!host_set_.is_head()) chunk->resize(size);
    Flight& flight = flights_.emplace_back();
    flight.chunk = std::move(chunk);
    auto started = channel_->start(flight.chunk->data(), flight.chunk->size(), flight.ticket);
    if (!started) flights_.pop_back();
    return started;
}

Result<void> Stream::settle() {
    Flight& flight = flights_.front();
    channel_->wait(flight.ticket);
    if (flight.ticket.error != 0) return Channel::failure(flight.ticket);
    sizes_.push_back(size_ahead(*flight.chunk));
    consume(flight.chunk);
    flights_.pop_front();
    failures_ = 0;
    return {};
}

// Drops chunks that are repeated after a failure.
void Stream::consume(const Chunk& chunk) {
    if (number_of(*chunk) != next_) return;
    ++next_;
    callbacks_.consume(chunk);
}

Chunk Stream::fetch(std::uint64_t number) {
    while (fetched_ <= number) {
        Chunk chunk = chunks_->take();
        if (chunk == nullptr) return nullptr;
        history_.push_back(std::move(chunk));
        if (history_.size() > kHistory) history_.pop_front();
        ++fetched_;
    }
    return history_[number - (fetched_ - history_.size())];
}

}  // namespace mcastcoll::cp
