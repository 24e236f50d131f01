// A member of a host's team, whose peers write arbitrary values into the shared memory: words of lines,
// lengths, stages, the agreement. Only the process numbers never name another process.
#include <unistd.h>

#include <cstring>
#include <deque>
#include <memory>

#include "fuzz.h"
#include "host/collectives.h"
#include "host/team.h"

using namespace mcastcoll;
using namespace mcastcoll::host;

namespace {

constexpr std::uint32_t kMembers = 3, kSlots = 2, kSlotBytes = 256;
constexpr std::uint64_t kKey = 7;
constexpr std::uint32_t kNoProcess = 0x7ffffff0;

// Created once, because creation costs more than running an input.
const std::shared_ptr<Segment>& memory() {
    static const auto made = [] {
        auto segment = Segment::create({}, Rings::bytes_for({kMembers, kSlots, kSlotBytes}));
        fuzz::check(segment.ok(), "there is room in /dev/shm");
        segment.value()->unlink();
        return std::move(segment).value();
    }();
    return made;
}

struct Posted {
    fuzz::Call call;
    Operation operation;
    bool over = false;
};

class Liars {
  public:
    Liars(fuzz::Input& in, std::uint32_t self, std::uint32_t members)
        : in_(in), self_(self), members_(members), header_(*reinterpret_cast<Header*>(memory()->data())) {
        std::memset(memory()->data(), 0, memory()->bytes());
        header_.key = kKey;
        header_.layout = kLayout;
        header_.size = members;
        header_.slots = kSlots;
        header_.slot_bytes = kSlotBytes;
        header_.magic.store(kMagic);
        rings_ = std::make_unique<Rings>(header_, Shape{members, kSlots, kSlotBytes}, self);
        for (std::uint32_t member = 0; member < members; ++member) {
            if (member == self) continue;
            MemberRecord& record = rings_->record(member);
            record.stage.store(Stage::probed);
            record.nonce = nonce_;
            record.nonce_address = reinterpret_cast<std::uintptr_t>(&nonce_);
            record.can_copy.store(1);
        }
        // The members' process is this process, or none: an input must never touch another process. With two
        // members each may write into the peer's buffer, so the number is then kNoProcess.
        pid_ = members > 2 && in.flag() ? static_cast<std::uint32_t>(::getpid()) : kNoProcess;
        Agreement& agreement = header_.agreement;
        agreement.single_copy = in.flag();
        agreement.thresholds = {.single_copy_from = 600,
                                .both_copy_from = 600,
                                .share_from = 200,
                                .blocks_direct_from = 600,
                                .reduce_direct_from = 600};
        agreement.ready.store(in.any<std::uint8_t>() < 240);
        keep_to_themselves();
    }
    // Of two processes one may write into the other's buffer until its word ends this permission.
    ~Liars() {
        for (std::uint32_t member = 0; member < members_; ++member)
            if (member != self_)
                for (Step step = 0; step < kLines; ++step) rings_->line(member, step).word.store(0);
    }

    void write() {
        const Step own = rings_left();
        const Step step = own + in_.between<Step>(0, 3);
        switch (in_.between<unsigned>(0, 7)) {
            case 0: {
                const auto bytes = fuzz::take_bytes(in_, 64);
                const auto at = in_.between<std::size_t>(0, memory()->bytes() - bytes.size());
                if (!bytes.empty()) std::memcpy(memory()->data() + at, bytes.data(), bytes.size());
                break;
            }
            case 1:
            case 2:
            case 3: {
                Line& line = rings_->line(liar(), step);
                const Offer offer{.address = reinterpret_cast<std::uintptr_t>(theirs_.data()),
                                  .bytes = fuzz::take_number(in_),
                                  .both = in_.flag(),
                                  .result = reinterpret_cast<std::uintptr_t>(theirs_.data()),
                                  .in_place = in_.flag()};
                std::memcpy(line.payload.data(), &offer, sizeof offer);
                line.extent.store(fuzz::take_number(in_));
                line.word.store(Word::of(step, in_.between<unsigned>(0, 9), in_.flag(),
                                         fuzz::take_number(in_) & Word::kMaxCount));
                break;
            }
            case 4:
                rings_->line(liar(), step).extent.store(fuzz::take_number(in_));
                break;
            case 5:
                area_of(liar()).left.step.store(fuzz::take_number(in_));
                break;
            case 6:
                rings_->record(liar()).leader = static_cast<std::uint32_t>(fuzz::take_number(in_));
                rings_->record(liar()).stage.store(static_cast<Stage>(in_.between<unsigned>(0, 5)));
                break;
            case 7: {
                Thresholds& from = header_.agreement.thresholds;
                for (const auto one :
                     {&Thresholds::single_copy_from, &Thresholds::both_copy_from, &Thresholds::share_from,
                      &Thresholds::blocks_direct_from, &Thresholds::reduce_direct_from})
                    from.*one = fuzz::take_number(in_);
                header_.agreement.reduce_by_shares = in_.flag();
                header_.agreement.ready.store(1);
                break;
            }
        }
        keep_to_themselves();
    }

  private:
    MemberArea& area_of(std::uint32_t member) const {
        return *reinterpret_cast<MemberArea*>(&rings_->record(member));
    }
    Step rings_left() const { return area_of(self_).left.step.load(); }
    std::uint32_t liar() { return in_.between<std::uint32_t>(0, members_ - 1); }
    void keep_to_themselves() {
        for (std::uint32_t member = 0; member < members_; ++member) rings_->record(member).pid = pid_;
    }

    fuzz::Input& in_;
    const std::uint32_t self_, members_;
    Header& header_;
    std::unique_ptr<Rings> rings_;
    std::uint32_t pid_ = 0;
    std::uint64_t nonce_ = 1;
    std::array<std::byte, 8192> theirs_{};
};

void lay_out(Posted& posted, fuzz::Input& in, std::uint32_t self, std::uint32_t members) {
    constexpr std::size_t kLengths[] = {0, 8, 64, 112, 120, 256, 264, 600, 1024, 2000};
    const auto kind = static_cast<Kind>(in.between<unsigned>(0, kCollectiveKinds - 1));
    const auto root = in.between<std::uint32_t>(0, members - 1);
    posted.call.lay_out(kind, root, in.one_of(kLengths), self, members, in.flag());
    posted.operation = operation_of(posted.call.request);
}

void look_at(std::deque<Posted>& posted) {
    for (Posted& one : posted) {
        fuzz::check(one.operation.arrived <= one.operation.bytes, "no more arrives than there is room for");
        fuzz::check(!one.over || one.operation.done, "what is over stays so");
        one.over = one.operation.done;
    }
}

void as_another(fuzz::Input& in) {
    const auto members = in.between<std::uint32_t>(2, kMembers);
    const auto self = in.between<std::uint32_t>(1, members - 1);
    std::deque<Posted> posted;
    TeamConfig config;
    config.key = kKey;
    config.self = self;
    config.size = members;
    config.segment = memory();
    Liars liars(in, self, members);
    auto opened = Team::open(config);
    if (!opened) return;
    std::unique_ptr<Team> team = std::move(opened).value();
    while (in.remaining_bytes() > 0) {
        const auto what = in.between<unsigned>(0, 7);
        if (what < 4) {
            liars.write();
        } else if (what < 6) {
            lay_out(posted.emplace_back(), in, self, members);
            if (team->post(posted.back().operation) != 0) posted.pop_back();
        } else {
            unsigned turns = 0;
            while (team->progress()) fuzz::check(++turns < 2000, "progress comes to an end");
            fuzz::check(team->awaited() < members, "who is awaited is a member");
        }
        look_at(posted);
    }
}

// Fuzzes member 0, which alone decides the agreement, from the other members' entries (MemberRecord).
void as_the_first(fuzz::Input& in) {
    const auto members = in.between<std::uint32_t>(2, kMembers);
    Liars liars(in, 0, members);
    TeamConfig config;
    config.key = kKey;
    config.size = members;
    config.clusters.resize(members);
    for (auto& ids : config.clusters) ids.push_back(in.any<std::uint8_t>() % 2);
    const Shape shape{members, kSlots, kSlotBytes};
    Formation formation(config, {memory(), shape});
    Context context(formation.header(), shape, 0);
    if (!formation.arrive(context.rings)) return;
    std::deque<Posted> posted;
    while (in.remaining_bytes() > 0) {
        liars.write();
        if (!formation.is_over() && !formation.advance(context)) continue;
        (void)formation.explain(context);
        if (posted.empty() || posted.back().operation.done) lay_out(posted.emplace_back(), in, 0, members);
        if (advance(context, posted.back().operation) == Advance::finished)
            posted.back().operation.done = true;
        if (context.rings.failure() != 0) break;
        look_at(posted);
    }
    formation.leave(context.rings);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input in(data, size);
    if (in.any<std::uint8_t>() % 4 == 0)
        as_the_first(in);
    else
        as_another(in);
    return 0;
}
