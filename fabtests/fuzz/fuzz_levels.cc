// The levels that use messages, and the planner above, in one member. Its peers send any pieces and grants,
// while its application starts operations.
#include <deque>

#include "fuzz.h"
#include "levels/exchange_level.h"
#include "levels/planner.h"
#include "levels/site_level.h"

using namespace mcastcoll;
using namespace mcastcoll::levels;

namespace {

// Every member is a host, and a segment, of its own: other fuzzers cover the inner levels.
const std::vector<MemberPlace> kShapes[] = {{{0, 0, 0}, {1, 1, 1}},
                                            {{0, 0, 0}, {1, 1, 0}, {2, 2, 1}, {3, 3, 1}},
                                            {{0, 0, 0}, {1, 1, 1}, {2, 2, 2}, {3, 3, 3}, {4, 4, 4}}};
constexpr const char* kSelections[] = {"", "allgather * * * chains:1\nallreduce * * * split:2\n",
                                       "allgather * * * reduction\n", "allgather * * * chains:3\n"};
constexpr std::size_t kMaxOpen = 8;

Selection selection(unsigned which, const Placement& placement) {
    static const auto rows = [] {
        std::vector<std::vector<Row>> all;
        for (const char* text : kSelections) all.push_back(parse_selection(text).value());
        return all;
    }();
    return {rows[which], placement.members(), placement.hosts()};
}

MessageConfig config_of(const Placement& placement) {
    return {.key = GroupKey{7},
            .epoch = Epoch{1},
            .self = placement.self(),
            .members = placement.members(),
            .message_bytes = 1024,
            .window_bytes = 2048,
            .long_window_bytes = 4096,
            .borrowed_credit_bytes = 8192};
}

topology::Algorithm shape_of_tree(unsigned which) {
    static const topology::Algorithm all[] = {*topology::algorithm_named("flat"),
                                              *topology::algorithm_named("chain"),
                                              *topology::algorithm_named("binomial")};
    return all[which];
}

class Member final : private Hierarchy::Owner {
  public:
    Member(fuzz::Input& in, const std::vector<MemberPlace>& places, std::uint32_t self)
        : in_(in),
          placement_(self, places),
          site_(placement_, {config_of(placement_), shape_of_tree(in.between(0U, 2U)),
                             shape_of_tree(in.between(0U, 2U))}),
          exchange_(exchange_config(placement_)),
          planner_(placement_, {nullptr, nullptr, &site_, &exchange_}, kMaxOpen, *this,
                   selection(in.between(0U, 3U), placement_)) {
        site_.start(now_);
    }

    void receive() {
        constexpr wire::Kind kKinds[] = {wire::Kind::piece, wire::Kind::piece, wire::Kind::block,
                                         wire::Kind::block, wire::Kind::grant, wire::Kind::block_grant};
        wire::Header header{.kind = in_.one_of(kKinds),
                            .key = GroupKey{7},
                            .epoch = Epoch{1},
                            .sender = rank_of(in_.between(0U, placement_.members()))};
        std::uint64_t word = fuzz::take_number(in_);
        if (const auto number = in_.any<std::uint8_t>(); number < 240) {
            word = number % 16;
            if (header.kind == wire::Kind::block)
                word = (word << 4 | in_.between(0U, 8U)) << kMessageBits;
            else
                word <<= 1;
            word |= in_.between(0U, 3U);
        }
        header.operation = operation_of(word);
        const auto length = in_.any<std::uint8_t>();
        header.fragment = fragment_of(length < kLengths.size() ? static_cast<std::uint32_t>(kLengths[length])
                                                               : last_bytes_);
        header.total = fuzz::take_number(in_) * (in_.flag() ? 8 : 1);
        static const std::vector<std::byte> kPayload(1024);
        const Bytes payload =
            Bytes(kPayload).first(in_.flag() ? in_.between<std::size_t>(0, 1024)
                                             : std::min<std::size_t>(last_bytes_, kPayload.size()));
        header.payload_bytes = static_cast<std::uint32_t>(payload.size());
        wire::HeaderBytes head;
        wire::encode(header, payload, head);
        std::vector<std::byte> message(head.begin(), head.end());
        message.insert(message.end(), payload.begin(), payload.end());
        if (exchange_.takes(header.kind))
            exchange_.on_message(message, now_);
        else
            site_.on_message(message, now_);
    }

    void post() {
        if (!site_.connected()) return;  // a group, too, submits only when its sites are connected
        fuzz::Call& call = calls_.emplace_back();
        call.lay_out(static_cast<Kind>(in_.between<unsigned>(0, kCollectiveKinds - 1)),
                     in_.between(0U, placement_.members() - 1), in_.one_of(kLengths), placement_.self(),
                     placement_.members(), in_.flag());
        Request request;
        static_cast<Collective&>(request) = call.request;
        request.cookie = ended_.size();
        ended_.push_back(false);
        submitting_ = true;
        if (planner_.submit(request, now_) != 0) {
            ended_.pop_back();
            calls_.pop_back();
        } else {
            last_bytes_ = static_cast<std::uint32_t>(call.request.bytes);
            ++open_;
        }
        submitting_ = false;
    }

    void lose() {
        const auto rank = in_.between(0U, placement_.members() - 1);
        site_.lose(rank);
        exchange_.lose(rank);
        (void)(site_.needs(rank) || exchange_.needs(rank));
    }

    void wait() { now_ = now_ + Nanoseconds{in_.between<std::int64_t>(0, 200'000'000)}; }

    void fail() { planner_.fail(104, now_); }

    void move() {
        unsigned turns = 0;
        while (planner_.progress(now_)) fuzz::check(++turns < 10'000, "progress comes to an end");
        send_all(site_);
        send_all(exchange_);
        fuzz::check(planner_.open_operations() <= kMaxOpen, "no more are open than may be");
        fuzz::check(planner_.open_operations() == open_, "what is open has not ended");
        fuzz::check(planner_.next_deadline().value >= 0, "a deadline is a time");
    }

  private:
    static constexpr unsigned kMessageBits = 8;
    static constexpr std::array<std::size_t, 9> kLengths{0, 1, 8, 64, 304, 1000, 2000, 5000, 20'000};

    static ExchangeConfig exchange_config(const Placement& placement) {
        ExchangeConfig config{config_of(placement)};
        config.memory_bytes = 8192;
        config.max_window_bytes = 2048;
        return config;
    }
    void on_complete(std::uint64_t cookie, int, Nanoseconds) override {
        fuzz::check(cookie < ended_.size(), "what completes was submitted");
        fuzz::check(!ended_[cookie], "nothing completes twice");
        fuzz::check(!submitting_, "nothing completes while it is submitted");
        ended_[cookie] = true;
        --open_;
    }
    void send_all(MessageLevel& level) {
        unsigned turns = 0;
        for (Outgoing out; level.poll_outgoing(out);) {
            fuzz::check(++turns < 10'000, "what is to be sent comes to an end");
            fuzz::check(out.to < placement_.members() && out.to != placement_.self(), "it goes to a member");
            fuzz::check(out.payload.size() + wire::kHeaderBytes <= 1024, "no message is too long");
        }
        for (std::uint32_t rank; level.poll_watch(rank);)
            fuzz::check(rank < placement_.members() && rank != placement_.self(),
                        "who is watched is a member");
        fuzz::check(level.awaited() == kNotThere || level.awaited() < placement_.members(),
                    "who is awaited is a member");
    }

    fuzz::Input& in_;
    Nanoseconds now_ = Nanoseconds::from_ms(1);
    std::deque<fuzz::Call> calls_;  // must outlive the levels
    std::vector<bool> ended_;
    std::size_t open_ = 0;
    std::uint32_t last_bytes_ = 0;
    bool submitting_ = false;
    Placement placement_;
    SiteLevel site_;
    ExchangeLevel exchange_;
    Planner planner_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input in(data, size);
    const auto& places = kShapes[in.between(0U, 2U)];
    const auto self = in.between<std::uint32_t>(0, static_cast<std::uint32_t>(places.size()) - 1);
    Member member(in, places, self);
    while (in.remaining_bytes() > 0) {
        switch (const auto what = in.between(0U, 31U)) {
            case 28:
            case 29:
                member.wait();
                break;
            case 30:
                member.lose();
                break;
            case 31:
                member.fail();
                break;
            default:
                if (what < 20)
                    member.receive();
                else
                    member.post();
        }
        member.move();
    }
    return 0;
}
