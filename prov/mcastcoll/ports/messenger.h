// Reliable messages between stations, over a private endpoint of the inner provider with its own queue and
// address vector: no tag bits are taken from the application and none of these completions can reach its
// queues.
//
// A message is copied into a buffer of fixed pools, so the caller's memory is free when send() returns. The
// pools are the bound on what is under way; can_send() says when they are used up, or the caller's share of
// them. Who cannot come back when there is room tells its word, which then waits here, and everything else
// behind it.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include <map>
#include <unordered_map>

#include "base/result.h"
#include "group/outbox.h"
#include "provider/owners.h"

namespace mcastcoll::ofi {

using group::kMessageBytes;
inline constexpr std::size_t kSmallMessageBytes = 2048;

class Messenger final : private group::Outbox::Port {
  public:
    // Who gets what arrives. Called from poll(), must not call poll().
    class Receiver {
      public:
        virtual void on_message(MutableBytes message) = 0;
        // A message to this peer could not be delivered; error is a positive FI_E* code.
        virtual void on_send_error(fi_addr_t peer, int error) = 0;

      protected:
        ~Receiver() = default;
    };

    // What one group has under way. It takes a buffer only as long as it has fewer than three times those
    // that are left: a group that waits for a peer that takes nothing leaves room for all others, and one
    // that is alone has three quarters. Switches share their memory among ports so (Choudhury and Hahne,
    // Dynamic queue length thresholds, 1998).
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

    // The fabric and the inner info are the station's; a domain of its own is opened on them.
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
    // Call only when can_send(). Header and payload together hold at most kMessageBytes.
    void send(Account& by, fi_addr_t peer, Bytes header, Bytes payload);
    // A word of at most kMessageBytes to each of them, as soon as there is room. The owner may withdraw it.
    void tell(std::vector<fi_addr_t> peers, wire::ByteString word,
              group::Outbox::Owner owner = group::Outbox::kNobody);
    void withdraw(group::Outbox::Owner owner) { outbox_.withdraw(owner); }
    // What was told, as far as there is room.
    void flush_told() { outbox_.flush(*this); }
    // Takes in what has arrived and sends what had to wait. True when anything happened.
    bool poll();
    // Messages that have begun and not ended hold all receives, so no other message can arrive.
    bool is_starved();
    // Messages that are not yet known to be sent.
    std::size_t under_way() const { return under_way_ + !outbox_.empty(); }

    // A descriptor that polls readable when poll() has something to do, or -1 when the inner provider has
    // none.
    int descriptor() const { return descriptor_; }
    // False: do not sleep on the descriptor, poll() has something to do; or the descriptor must be cleared
    // first of what has long been read, which may take a millisecond in which nothing else is heard, and this
    // may not.
    bool prepare_wait(bool may_pause = true);
    // Something waits that no descriptor tells of.
    bool must_poll() const {
        return !waiting_.empty() || (!outbox_.empty() && has_room(outbox_.next_bytes()));
    }

  private:
    // The context comes first: completions hand back its address.
    struct Request {
        fi_context2 context{};
        enum class Use : std::uint8_t { receive, small, large } use = Use::receive;
        std::byte* buffer = nullptr;
        std::size_t length = 0;
        fi_addr_t peer = FI_ADDR_UNSPEC;
        Account* by = nullptr;  // null: a word, or its group is gone
    };
    Messenger(fid_fabric* fabric, Receiver& receiver) : fabric_(fabric), receiver_(receiver) {}
    Result<void> open_endpoint(const fi_info* inner);
    Result<void> make_buffers(const fi_info* info);
    bool has_room(std::size_t bytes) const override {
        return !(bytes <= kSmallMessageBytes ? free_small_ : free_large_).empty();
    }
    void send_word(group::Outbox::Peer to, Bytes word) override { send_now(nullptr, to, word, {}); }
    void send_now(Account* by, fi_addr_t peer, Bytes header, Bytes payload);
    void forget(const Account& account);
    void post_receive(Request& request);
    // False: the peer takes nothing now.
    bool try_send(Request& request);
    void flush();
    void finish(Request& request);
    void read_errors();
    void withdraw_receives();

    fid_fabric* fabric_;
    Receiver& receiver_;
    FidOwner<fid_domain> domain_;
    FidOwner<fid_av> av_;
    FidOwner<fid_cq> cq_;
    FidOwner<fid_mr> memory_;
    void* memory_descriptor_ = nullptr;
    FidOwner<fid_ep> endpoint_;
    wire::ByteString address_;
    std::map<wire::ByteString, fi_addr_t> peers_;
    std::unique_ptr<std::byte[]> buffers_;
    std::vector<Request> requests_;
    std::vector<Request*> free_small_, free_large_, waiting_, blocked_receives_;
    Request* latest_receive_ = nullptr;  // the last one posted, which messages take last
    bool called_back_ = false;           // is_starved() could cancel the latest receive
    // What waits for a peer, and the round of flush() in which it took nothing.
    struct Backlog {
        std::size_t waiting = 0;
        std::uint64_t blocked_round = 0;
    };
    std::unordered_map<fi_addr_t, Backlog> backlogs_;  // of all peers
    std::uint64_t round_ = 0;
    group::Outbox outbox_;
    std::size_t inject_bytes_ = 0, under_way_ = 0;
    int descriptor_ = -1;
    bool over_rxm_ = false;
};

}  // namespace mcastcoll::ofi
