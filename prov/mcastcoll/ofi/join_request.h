// Parameters of a join: the application's request in terms of group/.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>

#include "ports/munge_secret.h"

namespace mcastcoll::ofi {

struct JoinRequest {
    group::JoinParameters core;
    group::MemberList members;  // normalised inner addresses
    fi_addr_t token = 0;        // result of fi_mc_addr()
    // The parent group named by the application.
    fi_addr_t parent = FI_ADDR_NOTAVAIL;
    void* context = nullptr;
    std::uint64_t counted_as = 0;  // key under which joins of the list are counted
    // Set if MUNGE carries the secret. Until the secret is known the group uses a private random key, so no
    // received message can be authentic.
    std::optional<ports::MungeSecret::Parameters> munge{};
    wire::ByteString set_key{};

    // Authenticates the messages of the join only. The process keeps this key after the group is gone.
    wire::JoinKey message_key{};

    // Called when the secret is known.
    void settle(const wire::Key& secret);
    void make_message_key();
    std::string name() const {
        return fmt::format("group {:x} of {}", core.id.list_hash & 0xffffff, members->size());
    }
};

}  // namespace mcastcoll::ofi
