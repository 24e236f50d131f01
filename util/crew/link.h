// A connection between head and member. Each side begins with a number drawn at random; the keys of both
// directions come from the two numbers and the crew's token, so that nothing of an earlier connection is good
// for this one, and who has no token says nothing that is taken.
#pragma once

#include <memory>

#include "base/clock.h"
#include "base/file_descriptor.h"
#include "crew/words.h"

namespace mcastcoll::crew {

class Link {
  public:
    enum class Side { head, member };

    Link(FileDescriptor socket, const wire::Key& token, Side side);

    void say(std::string_view message);
    // Sends and takes what the socket allows without waiting; false: the connection has ended, or the other
    // side has no token.
    bool move();
    Result<std::optional<std::string>> next();
    // Once it has proved that it is a member.
    void trust() { most_ = kMaxMessage; }

    int descriptor() const { return socket_.get(); }
    // POLLIN, and POLLOUT where something waits to be sent.
    short events() const;
    bool all_sent() const { return sent_ == out_.size(); }

  private:
    bool receive();
    void agree();

    FileDescriptor socket_;
    wire::Key token_, own_number_;
    Side side_;
    std::size_t most_ = kMaxGreeting;
    std::string in_, out_;  // in_: until the keys are there
    std::size_t sent_ = 0;
    std::vector<std::string> unsealed_;
    std::unique_ptr<Sealer> sealer_;
    std::unique_ptr<Opener> opener_;
};

// Moves the link until it has a message. ETIMEDOUT, or ECONNRESET when the other side is gone.
Result<std::string> await_message(Link& link, Deadline deadline);

}  // namespace mcastcoll::crew
