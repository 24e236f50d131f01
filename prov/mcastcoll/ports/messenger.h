// Reliable messages between collective endpoints, over a private endpoint of the inner provider with its own
// queue and address vector. The application loses no tag bits, and these completions cannot appear in its
// queues.
//
// send() copies a message into a buffer of a fixed pool, so the caller's memory is free on return. The pools
// bound the number of messages in flight. can_send() is false when a pool or the caller's share of a pool is
// used up. A caller that cannot try again later uses queue_message(): the message waits in the outbox until
// there is room, and all later messages wait behind this message.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include <map>
#include <unordered_map>

#include "base/result.h"
#include "group/outbox.h"
#include "provider/fid_owner.h"

namespace mcastcoll::ports {

using group::kMessageBytes;
inline constexpr std::size_t kSmallMessageBytes = 2048;

class Messenger final : private group::Outbox::Port {
  public:
    // Receives arriving messages. Called from poll(); must not call poll().
    class Receiver {
      public:
        virtual void on_message(MutableBytes message) = 0;
        // A message to this peer could not be delivered. error is a positive FI_E* code.
        virtual void on_send_error(fi_addr_t peer, int error) = 0;

      protected:
        ~Receiver() = default;
    };

    // Counts one group's buffers in flight. A group may take a buffer only while holding fewer than three
    // times the number of free buffers. A group with a stalled peer thus leaves buffers for all others, and a
    // single group can use three quarters. Switches share buffer memory among ports in the same way
    // (Choudhury and Hahne, Dynamic queue length thresholds, 1998).
    class Account {
      public:
        explicit Account(Messenger& its_messenger) : messenger_(its_messenger) {}
        ~Account() { messenger_.forget(*this); }
        Account(const Account&) = delete;
        Account& operator=(const Account&) = delete;

      private:
        friend Messenger;
        static constexpr std::size_t kShare = 3;
        Messenger& messenger_;
        std::size_t small_ = 0, large_ = 0;
    };

    // The collective endpoint owns the fabric and the inner info. The messenger opens its own domain on this
    // fabric.
    static Result<std::unique_ptr<Messenger>> open(fid_fabric* fabric, const fi_info* inner,
                                                   Receiver& receiver);
    ~Messenger();
    Messenger(const Messenger&) = delete;
    Messenger& operator=(const Messenger&) = delete;

    const wire::ByteString& address() const { return address_; }
    Result<fi_addr_t> peer(const wire::ByteString& address);

    bool can_send(const Account& by) const {
        return by.small_ < Account::kShare * free_small_.size() &&
               by.large_ < Account::kShare * free_large_.size() && outbox_.empty();
    }
    // Call only if can_send(). Header and payload together have at most kMessageBytes.
    void send(Account& by, fi_addr_t peer, Bytes header, Bytes payload);
    // Sends a message of at most kMessageBytes to each peer as soon as there is room. The owner may withdraw
    // the message.
    void queue_message(std::vector<fi_addr_t> peers, wire::ByteString message,
                       group::Outbox::Owner owner = group::Outbox::kNoOwner);
    void withdraw(group::Outbox::Owner owner) { outbox_.withdraw(owner); }
    // Sends messages from the outbox while there is room.
    void flush_queue() { outbox_.flush(*this); }
    // Handles received messages and sends waiting ones. Returns true if anything happened.
    bool poll();
    // True if unfinished messages occupy every receive buffer, so that no further message can arrive.
    bool is_starved();
    // Number of incompletely sent messages.
    std::size_t under_way() const { return under_way_ + !outbox_.empty(); }

    // A descriptor, readable when poll() has work; -1 if the inner provider has none.
    int descriptor() const { return descriptor_; }
    // Returns false if the caller must not sleep on the descriptor, because poll() has work or the descriptor
    // still reports old events. With may_pause, clears old events, which may take a millisecond in which no
    // other descriptor wakes the thread.
    bool prepare_wait(bool may_pause = true);
    // True if poll() has work that no descriptor signals.
    bool must_poll() const {
        return !waiting_.empty() || (!outbox_.empty() && has_room(outbox_.next_bytes()));
    }

  private:
    // The context comes first, because completions return its address.
    struct Request {
        fi_context2 context{};
        enum class Use : std::uint8_t { receive, small, large } use = Use::receive;
        std::byte* buffer = nullptr;
        std::size_t length = 0;
        fi_addr_t peer = FI_ADDR_UNSPEC;
        Account* by = nullptr;  // null: an outbox message, or the group is gone
    };
    Messenger(fid_fabric* fabric, Receiver& receiver) : fabric_(fabric), receiver_(receiver) {}
    Result<void> open_endpoint(const fi_info* inner);
    Result<void> make_buffers(const fi_info* info);
    bool has_room(std::size_t bytes) const override {
        return !(bytes <= kSmallMessageBytes ? free_small_ : free_large_).empty();
    }
    void send_join_message(group::Outbox::Peer to, Bytes message) override {
        send_now(nullptr, to, message, {});
    }
    void send_now(Account* by, fi_addr_t peer, Bytes header, Bytes payload);
    void forget(const Account& account);
    void post_receive(Request& request);
    // Returns false if the peer accepts nothing now.
    bool try_send(Request& request);
    void flush();
    void finish(Request& request);
    void read_errors();
    void withdraw_receives();

    fid_fabric* fabric_;
    Receiver& receiver_;
    provider::FidOwner<fid_domain> domain_;
    provider::FidOwner<fid_av> av_;
    provider::FidOwner<fid_cq> cq_;
    provider::FidOwner<fid_mr> memory_;
    void* memory_descriptor_ = nullptr;
    provider::FidOwner<fid_ep> endpoint_;
    wire::ByteString address_;
    std::map<wire::ByteString, fi_addr_t> peers_;
    std::unique_ptr<std::byte[]> buffers_;
    std::vector<Request> requests_;
    std::vector<Request*> free_small_, free_large_, waiting_, blocked_receives_;
    Request* latest_receive_ = nullptr;  // the last receive posted, which is filled last
    bool called_back_ = false;           // the latest receive was cancelled, so it was unused
    // Number of messages that wait for a peer, and the last round of flush() in which the peer accepted
    // nothing.
    struct Backlog {
        std::size_t waiting = 0;
        std::uint64_t blocked_round = 0;
    };
    std::unordered_map<fi_addr_t, Backlog> backlogs_;  // for all peers
    std::uint64_t round_ = 0;
    group::Outbox outbox_;
    std::size_t inject_bytes_ = 0, under_way_ = 0;
    int descriptor_ = -1;
    bool over_rxm_ = false;
};

}  // namespace mcastcoll::ports
