#include "exercise.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace mcastcoll::fabtest {
namespace {

struct Shape {
    fi_collective_op collective;
    const char* name;
    enum Extent { nothing, part, all_parts, slice } input, result;
    bool only_root_gives = false, only_root_gets = false, reduces = false;
};

constexpr std::array kShapes = {
    Shape{FI_BARRIER, "barrier", Shape::nothing, Shape::nothing},
    Shape{FI_BROADCAST, "broadcast", Shape::nothing, Shape::part},
    Shape{FI_REDUCE, "reduce", Shape::part, Shape::part, false, true, true},
    Shape{FI_ALLREDUCE, "allreduce", Shape::part, Shape::part, false, false, true},
    Shape{FI_REDUCE_SCATTER, "reduce_scatter", Shape::part, Shape::slice, false, false, true},
    Shape{FI_ALLGATHER, "allgather", Shape::part, Shape::all_parts},
    Shape{FI_GATHER, "gather", Shape::part, Shape::all_parts, false, true},
    Shape{FI_SCATTER, "scatter", Shape::all_parts, Shape::part, true},
    Shape{FI_ALLTOALL, "alltoall", Shape::all_parts, Shape::all_parts},
};

const Shape& shape_of(fi_collective_op collective) {
    for (const Shape& one : kShapes)
        if (one.collective == collective) return one;
    fail("the test itself is wrong: it knows no collective {}", static_cast<int>(collective));
}

// Returns the position of a member's slice, as mcastcoll.h defines: an even distribution, with one more
// element for each of the first few members.
std::size_t slice_before(std::size_t member, std::size_t members, std::size_t count) {
    return count / members * member + std::min(member, count % members);
}

std::vector<std::byte> copy_of(Buffer& buffer) {
    return {buffer.data(), buffer.data() + buffer.size()};
}

bool is_like(Buffer& buffer, const std::vector<std::byte>& before) {
    return std::equal(before.begin(), before.end(), buffer.data());
}

}  // namespace

Extension::Extension(const Join& group) : mc_(group.mc.get()) {
    CHECK_RETURNS(
        0, fi_open_ops(&mc_->fid, FI_MCASTCOLL_GROUP_OPS, 0, reinterpret_cast<void**>(&ops_), nullptr));
    CHECK(ops_->size >= sizeof *ops_ && ops_->run != nullptr);
}

Exercise::Exercise(const Job& job, unsigned self, unsigned members)
    : job_(job),
      type_(datatype_of(job.type)),
      self_(self),
      members_(members),
      part_bytes_(job.collective == FI_BARRIER ? 0 : job.count * type_.bytes) {
    const Shape& shape = shape_of(job.collective);
    const bool is_root = self == job.root;
    gives_ = shape.input != Shape::nothing && (is_root || !shape.only_root_gives);
    gets_ = shape.result != Shape::nothing && (is_root || !shape.only_root_gets);
    const auto bytes_of = [&](Shape::Extent extent) {
        if (extent == Shape::nothing) return std::size_t{0};
        if (extent == Shape::part) return part_bytes_;
        if (extent == Shape::all_parts) return part_bytes_ * members;
        return (slice_before(self + 1, members, job.count) - slice_before(self, members, job.count)) *
               type_.bytes;
    };
    input_bytes_ = gives_ ? bytes_of(shape.input) : 0;
    result_bytes_ = gets_ ? bytes_of(shape.result) : 0;
    const bool in_place = job.in_place && gives_ && gets_;
    input_ = std::make_unique<Buffer>((in_place ? 0 : input_bytes_) + job.offset);
    // A member without a result gets a buffer that must stay unchanged.
    const std::size_t room = gets_ ? std::max(result_bytes_, in_place ? input_bytes_ : 0) : part_bytes_;
    result_ = std::make_unique<Buffer>(room + job.offset);
    input_->poison();
    result_->poison();
    std::byte* from = (in_place ? result_ : input_)->data() + job.offset;
    result_place_ = result_->data() + job.offset;
    // In place, the shorter buffer lies at its position in the longer buffer.
    if (in_place && shape.input == Shape::part && shape.result == Shape::all_parts)
        from += self * part_bytes_;
    if (in_place && shape.input == Shape::all_parts && shape.result == Shape::part)
        result_place_ += self * part_bytes_;
    if (gives_) fill_input(from);
    if (job.collective == FI_BROADCAST && is_root) fill_part(result_place_, seed_of(job.root));
    input_at_ = from;
    result_at_ = result_place_;
    // Arguments that the provider must ignore may have any value.
    if (!gets_ && job.seed % 2 == 0) result_at_ = nullptr;
    if (!gives_ && job.seed % 2 == 0) input_at_ = nullptr;
    if (part_bytes_ == 0 && job.seed % 2 == 0) input_at_ = result_at_ = nullptr;
    input_before_ = copy_of(*input_);
    result_before_ = copy_of(*result_);
}

std::uint64_t Exercise::seed_of(unsigned member) const {
    return mix(job_.seed, member, static_cast<std::uint64_t>(job_.collective));
}

// The seed of the data that `from` sends to `to` only.
std::uint64_t Exercise::seed_of(unsigned from, unsigned to) const {
    return mix(seed_of(from), to);
}

void Exercise::fill_part(std::byte* to, std::uint64_t seed) const {
    type_.fill(to, job_.count, job_.op, job_.values, seed);
}

void Exercise::fill_input(std::byte* to) const {
    if (shape_of(job_.collective).input == Shape::part) return fill_part(to, seed_of(self_));
    for (unsigned i = 0; i < members_; ++i) fill_part(to + i * part_bytes_, seed_of(self_, i));
}

Ticket& Exercise::post(Member& me, const Join& group) const {
    return me.start(shape_of(job_.collective).name,
                    [&](Ticket* ticket) { return post(me.ep(), group.address(), ticket); });
}

ssize_t Exercise::post(fid_ep* ep, fi_addr_t group, void* context) const {
    if (job_.message) return post_message(ep, group, context);
    switch (job_.collective) {
        case FI_BARRIER:
            return fi_barrier2(ep, group, 0, context);
        case FI_BROADCAST:
            return fi_broadcast(ep, result_at_, job_.count, nullptr, group, job_.root, job_.type, 0, context);
        case FI_REDUCE:
            return fi_reduce(ep, input_at_, job_.count, nullptr, result_at_, nullptr, group, job_.root,
                             job_.type, job_.op, 0, context);
        case FI_ALLREDUCE:
            return fi_allreduce(ep, input_at_, job_.count, nullptr, result_at_, nullptr, group, job_.type,
                                job_.op, 0, context);
        case FI_REDUCE_SCATTER:
            return fi_reduce_scatter(ep, input_at_, job_.count, nullptr, result_at_, nullptr, group,
                                     job_.type, job_.op, 0, context);
        case FI_ALLGATHER:
            return fi_allgather(ep, input_at_, job_.count, nullptr, result_at_, nullptr, group, job_.type, 0,
                                context);
        case FI_GATHER:
            return fi_gather(ep, input_at_, job_.count, nullptr, result_at_, nullptr, group, job_.root,
                             job_.type, 0, context);
        case FI_SCATTER:
            return fi_scatter(ep, input_at_, job_.count, nullptr, result_at_, nullptr, group, job_.root,
                              job_.type, 0, context);
        case FI_ALLTOALL:
            return fi_alltoall(ep, input_at_, job_.count, nullptr, result_at_, nullptr, group, job_.type, 0,
                               context);
    }
    fail("the test itself is wrong: {}", describe());
}

// Splits every buffer into two adjacent pieces; fi_mcc_collectives has a case for other pieces.
ssize_t Exercise::post_message(fid_ep* ep, fi_addr_t group, void* context) const {
    const auto split = [&](void* at, std::size_t bytes) {
        const std::size_t count = bytes / type_.bytes, first = count / 3;
        return std::array{fi_ioc{at, first},
                          fi_ioc{static_cast<std::byte*>(at) + first * type_.bytes, count - first}};
    };
    auto inputs = split(const_cast<void*>(input_at_), input_bytes_);
    auto results = split(result_at_, result_bytes_);
    fi_msg_collective message{};
    message.msg_iov = job_.collective == FI_BROADCAST ? results.data() : inputs.data();
    message.iov_count = 2;
    message.coll_addr = group;
    message.root_addr = job_.root;
    message.coll = job_.collective;
    message.datatype = job_.type;
    message.op = job_.op;
    message.context = context;
    return ep->collective->msg(ep, &message, results.data(), nullptr, results.size(), 0);
}

fi_mcastcoll_request Exercise::request() const {
    fi_mcastcoll_request request{};
    request.size = sizeof request;
    request.collective = job_.collective;
    request.input = input_at_;
    request.buffer = result_at_;
    request.count = job_.count;
    request.datatype = job_.type;
    request.op = job_.op;
    request.root = job_.root;
    return request;
}

std::string Exercise::describe() const {
    return fmt::format("{} of {} {}, {}, root {}{}{}{}, in a group of {}, seed {}",
                       shape_of(job_.collective).name, job_.count, type_.name, fabtest::name_of(job_.op),
                       job_.root, job_.in_place ? ", in place" : "", job_.offset ? ", not aligned" : "",
                       job_.message ? ", as a message" : "", members_, job_.seed);
}

void Exercise::check() const {
    input_->check_guards("the input");
    result_->check_guards("the result");
    if (!is_like(*input_, input_before_)) fail("{}: the input was written to", describe());
    // Checks the bytes around the result, and the whole buffer of a member without a result.
    const auto before = result_before_.begin();
    const auto begins = gets_ ? result_place_ - result_->data() : 0;
    const auto ends = begins + static_cast<std::ptrdiff_t>(result_bytes_);
    if (!std::equal(before, before + begins, result_->data()) ||
        !std::equal(before + ends, result_before_.end(), result_->data() + ends))
        fail("{}: bytes that are not the result's were written", describe());
    if (!gets_) return;
    if (shape_of(job_.collective).reduces) return check_reduction();
    check_parts();
}

void Exercise::check_reduction() const {
    std::vector<std::byte> wanted(part_bytes_), other(part_bytes_);
    fill_part(wanted.data(), seed_of(0));
    for (unsigned i = 1; i < members_; ++i) {
        fill_part(other.data(), seed_of(i));
        type_.combine(wanted.data(), other.data(), job_.count, job_.op);
    }
    const unsigned roundings = job_.values == Values::exact ? 0 : 2 * members_;
    const std::size_t skipped =
        job_.collective == FI_REDUCE_SCATTER ? slice_before(self_, members_, job_.count) : 0;
    if (const auto at = type_.find_difference(result_place_, wanted.data() + skipped * type_.bytes,
                                              result_bytes_ / type_.bytes, roundings))
        fail("{}: element {} is wrong", describe(), *at);
}

void Exercise::check_parts() const {
    if (part_bytes_ == 0) return;
    std::vector<std::byte> wanted(part_bytes_);
    for (unsigned i = 0; i < result_bytes_ / part_bytes_; ++i) {
        const std::uint64_t seed = job_.collective == FI_BROADCAST  ? seed_of(job_.root)
                                   : job_.collective == FI_SCATTER  ? seed_of(job_.root, self_)
                                   : job_.collective == FI_ALLTOALL ? seed_of(i, self_)
                                                                    : seed_of(i);
        fill_part(wanted.data(), seed);
        if (const auto at =
                type_.find_difference(result_place_ + i * part_bytes_, wanted.data(), job_.count, 0))
            fail("{}: element {} of part {} is wrong", describe(), *at, i);
    }
}

std::uint64_t Exercise::digest() const {
    CHECK(gets_ && shape_of(job_.collective).reduces);
    return type_.digest(result_place_, result_bytes_ / type_.bytes);
}

Job draw_any_job(unsigned members, std::uint64_t seed, std::size_t largest_bytes) {
    Job job;
    job.seed = seed;
    job.collective = kShapes[mix(seed, 1) % kShapes.size()].collective;
    const Datatype& type = datatypes()[mix(seed, 2) % datatypes().size()];
    job.type = type.type;
    std::uint64_t draw = mix(seed, 3);
    do {
        draw = mix(draw);
        job.op = operators()[draw % operators().size()].op;
    } while (!type.allows(job.op));
    const unsigned shift = static_cast<unsigned>(mix(seed, 4) % 21);
    job.count = std::min(largest_bytes, mix(seed, 5) % (std::size_t{2} << shift)) / type.bytes;
    if (shape_of(job.collective).input == Shape::all_parts ||
        shape_of(job.collective).result == Shape::all_parts)
        job.count /= members;
    job.root = static_cast<unsigned>(mix(seed, 6) % members);
    job.in_place = mix(seed, 7) % 3 == 0;
    job.message = mix(seed, 8) % 4 == 0;
    return job;
}

}  // namespace mcastcoll::fabtest
