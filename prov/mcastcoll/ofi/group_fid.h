// The fid_mc that fi_join_collective hands out for a group, and the calls that applications make on it:
// fi_close(), and the public extension, mcastcoll/mcastcoll.h.
#pragma once

#include <rdma/fi_collective.h>

namespace mcastcoll::ofi {

class Group;

class GroupFid {
  public:
    // token: what fi_mc_addr() says.
    GroupFid(Group& group, fi_addr_t token, void* context);
    GroupFid(const GroupFid&) = delete;
    GroupFid& operator=(const GroupFid&) = delete;

    fid_mc* mc() { return &handle_.fid; }
    static Group& group_of(fid_mc& mc) { return *reinterpret_cast<Handle&>(mc).group; }

  private:
    struct Handle {
        fid_mc fid{};
        Group* group = nullptr;
    };
    Handle handle_;
};

}  // namespace mcastcoll::ofi
