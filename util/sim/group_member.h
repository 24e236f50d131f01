// A process's part in one group, in virtual time: the counterpart of the provider's group (ofi/group.h)
// around the pure group, and the application, which checks every byte. Most of the methods implement the
// ports of a group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "address.h"
#include "base/function_ref.h"
#include "group/group.h"
#include "group/joins.h"
#include "group/multicast.h"
#include "group/port.h"
#include "group_process.h"
#include "shared_group.h"

namespace mcastcoll::sim {

class GroupMember final : public group::Joins::Member, private group::Port, private group::Multicast {
  public:
    GroupMember(GroupProcess& process, SharedGroup& shared);

    group::Group& core() override { return core_; }
    const wire::JoinId& join_id() const override { return id_; }
    const group::MemberList& members() const override { return shared_.addresses(); }
    const wire::JoinKey& key() const override { return process_.world().options().key; }
    bool comes_from(Rank rank, const group::Source& source) override {
        return index_of(rank) < members()->size() && (*members())[index_of(rank)] == source;
    }
    void within(Nanoseconds, FunctionRef<void()> body) noexcept override { body(); }
    bool has_key(GroupKey key) const;
    bool listens() const { return listens_; }

    // The application: posts as far as allowed, and closes at the end. Returns true if it made progress.
    bool work();
    // The application closes the group if it has not joined yet.
    void give_up();
    // The process fails; its peers continue.
    void dies();

    // The first error of the join, of the group, or of an operation; 0 if there was none.
    int error() const { return error_; }
    // Whether the member has joined and completed everything, or has been notified of a failure.
    bool over() const { return join_over_ && completed_ == posted_ && (error_ != 0 || all_completed()); }
    Nanoseconds over_at() const { return over_at_; }
    // Whether no byte was written into the buffers of the last completed operations since their completion.
    bool scribbled() const;
    std::string state() const;

  private:
    struct Posted {
        std::vector<std::byte> input, buffer;
        SharedGroup::Content expected;  // expected contents of the buffer, until completion
        bool done = false, scribbled = false;
    };
    // Overrides of group::JoinPort.
    wire::Hello own_hello() const override;
    void send_hello(Rank to, std::uint32_t attempt, Bytes bytes) override;
    void send(Rank to, std::uint32_t attempt, Bytes datagram) override;
    const wire::Hello* miscounted_hello(Rank rank) override {
        return process_.joins().miscounted_hello(*this, rank);
    }
    group::RoundTrips& round_trips() override { return process_.round_trips(); }
    Result<Address> peer(const wire::ByteString& private_address) override {
        return value_of<Address>(private_address);
    }
    void queue_message(std::vector<Address> to, wire::ByteString message) override {
        process_.queue_message(std::move(to), wire::prove(message, key()), id_.list_hash);
    }
    void withdraw() override { process_.withdraw(id_.list_hash); }
    void explain(std::string_view) override {}
    // Overrides of group::Port.
    group::Multicast& multicast() override { return *this; }
    bool can_send() const override { return process_.can_send(); }
    void send_message(Address to, const wire::HeaderBytes& header, Bytes payload) override {
        process_.send_now(to, header, payload);
    }
    void queue_final_message(std::vector<Address> to, wire::ByteString message) override {
        process_.queue_message(std::move(to), wire::prove(message, key()), group::Outbox::kNoOwner);
    }
    void watch(Address peer, const wire::ByteString&, Nanoseconds) override;
    void look_at(Address peer, const wire::ByteString& point, Nanoseconds now) override {
        watch(peer, point, now);
    }
    Result<group::SharedBytes> find_table(const group::HostMemoryName& name) override;
    Result<std::unique_ptr<group::HostLevel>> open_host(const group::HostMembers& members) override;
    void keyed() override {}
    void changed() override {}
    void join_ended(int code) override;
    void remember_ended(int code) override { process_.joins().remember_ended(*this, code); }
    void failed(int code, Rank) override { end(code); }
    void completed(std::uint64_t cookie, int code) override;
    std::string describe_stray_hello() override;
    void warn(std::string_view sentence) override;
    std::string address_of(Rank) const override { return "somewhere"; }
    std::string text_of(int code) const override { return std::to_string(code); }
    // Overrides of group::Multicast.
    int offer(wire::Welcome& welcome, const group::Hellos& hellos) override;
    void join(const wire::Welcome& welcome, const levels::Placement& placement) override;
    bool joined() const override { return listens_; }
    const std::string& why_not() const override { return why_not_; }
    std::string name() const override { return "simulated"; }
    void send(const wire::HeaderBytes& header, Bytes payload, std::uint32_t range) override;
    void flush() override {}
    void forget_payloads() override {}

    GroupEnvironment& world() const { return process_.world(); }
    std::uint32_t group() const { return static_cast<std::uint32_t>(shared_.number() - 1); }
    bool all_completed() const { return completed_ == setup_.script.size(); }
    void end(int code);
    void post(std::size_t number);
    Posted& operation(std::size_t number) { return operations_[number - forgotten_]; }
    // Fills in the input and the expected result of an operation.
    void fill(std::size_t number);
    // Drops completed operations except the last few.
    void forget_old();

    GroupProcess& process_;
    SharedGroup& shared_;
    const GroupSetup& setup_;
    const wire::JoinId id_;
    const std::uint32_t rank_;
    std::vector<Posted> operations_;  // from the first kept operation to the last posted
    std::size_t forgotten_ = 0, posted_ = 0, completed_ = 0;
    bool join_over_ = false, closed_ = false;
    bool listens_ = false;  // to the group's multicasts
    int error_ = 0;
    Nanoseconds over_at_ = kNever;
    std::string why_not_;
    group::Group core_;
};

}  // namespace mcastcoll::sim
