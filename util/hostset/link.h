// A connection between head and member. Each side begins with a random number; the keys of both directions
// are derived from the two numbers and the token of the host set. So messages of an earlier connection are
// not valid on a later one, and messages from a process without the token are rejected.
#pragma once

#include <memory>

#include "base/deadline.h"
#include "base/file_descriptor.h"
#include "hostset/encoding.h"
#include "hostset/opener.h"
#include "hostset/sealer.h"

namespace mcastcoll::hostset {

class Link {
  public:
    enum class Side { head, member };

    Link(FileDescriptor socket, const wire::Key& token, Side side);

    void send(std::string_view message);
    // Sends and receives without waiting. Returns false if the connection has ended.
    bool progress();
    // Returns the next message, if it is complete. An error is final: the message is too long, or the other
    // side lacks the token.
    Result<std::optional<std::string>> next();
    // Allows long messages. The head calls this only after the member has proved the token.
    void allow_long_messages() { max_ = kMaxMessage; }

    int descriptor() const { return socket_.get(); }
    // The events for poll(): POLLIN, and POLLOUT while output is pending.
    short events() const;
    bool all_sent() const { return sent_ == out_.size(); }

  private:
    bool receive();
    void derive_keys();

    FileDescriptor socket_;
    wire::Key token_, own_number_;
    Side side_;
    std::size_t max_ = kMaxHello;
    std::string in_, out_;  // in_: input before the keys are derived
    std::size_t sent_ = 0;
    std::vector<std::string> unsealed_;
    std::unique_ptr<Sealer> sealer_;
    std::unique_ptr<Opener> opener_;
};

// Sends and receives until a message arrives. Errors are ETIMEDOUT at the deadline, and ECONNRESET if the
// connection has ended.
Result<std::string> await_message(Link& link, Deadline deadline);

}  // namespace mcastcoll::hostset
