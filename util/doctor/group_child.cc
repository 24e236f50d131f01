#include "group_child.h"

#include <fmt/format.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <vector>

namespace mcastcoll::doctor {
namespace {

constexpr int kJoin_ms = 40'000, kOperation_ms = 15'000, kOrders_ms = 600'000;
constexpr std::size_t kBytes = 200'000;  // of the broadcast: more than one datagram
constexpr std::size_t kMaxName = 256;

struct CloseFid {
    template <typename Object>
    void operator()(Object* object) const {
        ::fi_close(&object->fid);
    }
};
template <typename Object>
using Fid = std::unique_ptr<Object, CloseFid>;

void must(long result, const char* what) {
    if (result < 0)
        throw std::runtime_error(fmt::format("{}: {}", what, ::fi_strerror(static_cast<int>(-result))));
}

struct Group {
    std::vector<std::string> addresses;
    unsigned self = 0;
    std::string comm_key;
};

class Member {
  public:
    Member() {
        const std::unique_ptr<fi_info, decltype(&fi_freeinfo)> hints(::fi_allocinfo(), &::fi_freeinfo);
        if (!hints) throw std::bad_alloc();
        hints->caps = FI_MSG | FI_COLLECTIVE;
        hints->mode = FI_CONTEXT | FI_CONTEXT2;
        hints->ep_attr->type = FI_EP_RDM;
        hints->domain_attr->mr_mode = 0;
        hints->fabric_attr->prov_name = ::strdup("mcastcoll");
        fi_info* found = nullptr;
        const int result = ::fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &found);
        if (result == -FI_ENODATA) throw std::runtime_error("libfabric has no provider of this name");
        must(result, "fi_getinfo");
        info_.reset(found);
        open();
    }
    // The names of fabrics are "mcastcoll:INNER:ITS FABRIC".
    std::string inner() const {
        const std::string name = info_->fabric_attr->name != nullptr ? info_->fabric_attr->name : "";
        const std::size_t begin = name.find(':') + 1;
        return name.substr(begin, name.find(':', begin) - begin);
    }
    std::string address() const {
        std::string address(kMaxName, '\0');
        std::size_t size = address.size();
        must(::fi_getname(&ep_->fid, address.data(), &size), "fi_getname");
        address.resize(size);
        return address;
    }
    void start_join(const Group& group) {
        std::vector<fi_addr_t> members;
        for (const std::string& address : group.addresses) {
            fi_addr_t member = FI_ADDR_UNSPEC;
            if (::fi_av_insert(av_.get(), address.data(), 1, &member, 0, nullptr) != 1)
                throw std::runtime_error("fi_av_insert refused an address");
            members.push_back(member);
        }
        root_ = members.front();
        fi_av_set_attr attr{};
        attr.count = members.size();
        attr.start_addr = members.front();
        attr.end_addr = members.back();
        attr.stride = 1;
        std::vector<std::uint8_t> key(group.comm_key.begin(), group.comm_key.end());
        attr.comm_key_size = key.size();
        attr.comm_key = key.data();
        fid_av_set* set = nullptr;
        must(::fi_av_set(av_.get(), &attr, &set, nullptr), "fi_av_set");
        set_.reset(set);
        fid_mc* mc = nullptr;
        must(::fi_join_collective(ep_.get(), FI_ADDR_NOTAVAIL, set, 0, &mc, nullptr), "fi_join_collective");
        mc_.reset(mc);
    }
    bool joined() {
        std::uint32_t event = 0;
        fi_eq_entry entry{};
        const ssize_t got = ::fi_eq_read(eq_.get(), &event, &entry, sizeof entry, 0);
        if (got == -FI_EAVAIL) {
            fi_eq_err_entry wrong{};
            ::fi_eq_readerr(eq_.get(), &wrong, 0);
            must(-wrong.err, "the group");
        }
        return got > 0 && event == FI_JOIN_COMPLETE;
    }
    ssize_t broadcast(std::vector<unsigned char>& buffer) {
        return ::fi_broadcast(ep_.get(), buffer.data(), buffer.size(), nullptr, ::fi_mc_addr(mc_.get()),
                              root_, FI_UINT8, 0, nullptr);
    }
    ssize_t barrier() { return ::fi_barrier(ep_.get(), ::fi_mc_addr(mc_.get()), nullptr); }
    bool completed() {
        fi_cq_tagged_entry entry{};
        const ssize_t got = ::fi_cq_read(cq_.get(), &entry, 1);
        if (got == -FI_EAVAIL) {
            fi_cq_err_entry wrong{};
            ::fi_cq_readerr(cq_.get(), &wrong, 0);
            must(-wrong.err, "the operation");
        }
        return got == 1;
    }
    // Drives progress, so that peers get retransmissions from this member.
    void go_on() { (void)::fi_cq_read(cq_.get(), nullptr, 0); }
    void leave() { mc_.reset(); }

  private:
    void open() {
        fid_fabric* fabric = nullptr;
        must(::fi_fabric(info_->fabric_attr, &fabric, nullptr), "fi_fabric");
        fabric_.reset(fabric);
        fi_eq_attr eq_attr{};
        fid_eq* eq = nullptr;
        must(::fi_eq_open(fabric, &eq_attr, &eq, nullptr), "fi_eq_open");
        eq_.reset(eq);
        fid_domain* domain = nullptr;
        must(::fi_domain(fabric, info_.get(), &domain, nullptr), "fi_domain");
        domain_.reset(domain);
        fi_av_attr av_attr{};
        av_attr.type = FI_AV_TABLE;
        fid_av* av = nullptr;
        must(::fi_av_open(domain, &av_attr, &av, nullptr), "fi_av_open");
        av_.reset(av);
        fi_cq_attr cq_attr{};
        cq_attr.size = 64;
        cq_attr.format = FI_CQ_FORMAT_TAGGED;
        fid_cq* cq = nullptr;
        must(::fi_cq_open(domain, &cq_attr, &cq, nullptr), "fi_cq_open");
        cq_.reset(cq);
        fid_ep* ep = nullptr;
        must(::fi_endpoint(domain, info_.get(), &ep, nullptr), "fi_endpoint");
        ep_.reset(ep);
        must(::fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind");
        must(::fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
        must(::fi_ep_bind(ep, &eq->fid, 0), "fi_ep_bind");
        must(::fi_enable(ep), "fi_enable");
    }

    std::unique_ptr<fi_info, decltype(&fi_freeinfo)> info_{nullptr, &::fi_freeinfo};
    Fid<fid_fabric> fabric_;
    Fid<fid_eq> eq_;
    Fid<fid_domain> domain_;
    Fid<fid_av> av_;
    Fid<fid_cq> cq_;
    Fid<fid_ep> ep_;
    Fid<fid_av_set> set_;
    Fid<fid_mc> mc_;
    fi_addr_t root_ = FI_ADDR_UNSPEC;
};

// Polls each member until all return true.
template <typename Condition>
void wait_for_all(std::vector<std::unique_ptr<Member>>& members, int limit_ms, const char* what,
                  Condition condition) {
    std::vector<bool> done(members.size());
    const Deadline deadline(limit_ms);
    for (std::size_t open = members.size(); open > 0;) {
        for (std::size_t i = 0; i < members.size(); ++i) {
            if (done[i]) {
                members[i]->go_on();
            } else if (condition(*members[i], i)) {
                done[i] = true;
                --open;
            }
        }
        if (open == 0) return;
        if (deadline.over())
            throw std::runtime_error(fmt::format("{} had not ended after {} s", what, limit_ms / 1000));
        ::sched_yield();
    }
}

template <typename Start>
void carry_out(std::vector<std::unique_ptr<Member>>& members, const char* what, Start start) {
    std::vector<bool> begun(members.size());
    wait_for_all(members, kOperation_ms, what, [&](Member& member, std::size_t i) {
        if (!begun[i]) {
            const ssize_t result = start(member, i);
            if (result != -FI_EAGAIN) must(result, what);
            begun[i] = result == 0;
        }
        return member.completed() && begun[i];
    });
}

unsigned char pattern(std::size_t at) {
    return static_cast<unsigned char>(at * 7 + at / 251);
}

bool barrier_and_broadcast(std::vector<std::unique_ptr<Member>>& members, const Group& group) {
    for (const auto& member : members) member->start_join(group);
    wait_for_all(members, kJoin_ms, "the join", [](Member& member, std::size_t) { return member.joined(); });
    carry_out(members, "the barrier", [](Member& member, std::size_t) { return member.barrier(); });
    std::vector<std::vector<unsigned char>> buffers(members.size(), std::vector<unsigned char>(kBytes));
    if (group.self == 0)
        for (std::size_t i = 0; i < kBytes; ++i) buffers[0][i] = pattern(i);
    carry_out(members, "the broadcast",
              [&](Member& member, std::size_t i) { return member.broadcast(buffers[i]); });
    carry_out(members, "the last barrier", [](Member& member, std::size_t) { return member.barrier(); });
    for (const auto& buffer : buffers)
        for (std::size_t i = 0; i < kBytes; ++i)
            if (buffer[i] != pattern(i)) return false;
    return true;
}

// A folder for the counters that the provider writes when an endpoint closes.
class Counters {
  public:
    Counters() {
        if (::mkdtemp(folder_) == nullptr) folder_[0] = '\0';
        ::setenv("FI_MCASTCOLL_STATS", (std::string(folder_) + "/counters").c_str(), 1);
    }
    ~Counters() {
        std::error_code ignored;
        if (folder_[0] != '\0') std::filesystem::remove_all(folder_, ignored);
    }
    // `"NAME": 17`, one per line.
    std::map<std::string, std::uint64_t> read() const {
        std::map<std::string, std::uint64_t> all;
        std::error_code ignored;
        for (const auto& entry : std::filesystem::directory_iterator(folder_, ignored)) {
            std::ifstream file(entry.path());
            char name[80];
            unsigned long value = 0;
            for (std::string line; std::getline(file, line);)
                if (::sscanf(line.c_str(), " \"%79[^\"]\": %lu", name, &value) == 2) all[name] += value;
        }
        return all;
    }

  private:
    char folder_[40] = "/tmp/mcastcoll-doctor-XXXXXX";
};

std::string loaded_file() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
        if (line.ends_with("/libmcastcoll-fi.so")) return line.substr(line.find('/'));
    return {};
}

std::optional<Group> take_orders(int from) {
    const auto order = read_frame(from, Deadline(kOrders_ms));
    auto key = read_frame(from, Deadline(kOrders_ms));
    unsigned count = 0;
    Group group;
    if (!order || !key || ::sscanf(order->c_str(), "%u %u", &count, &group.self) != 2) return {};
    group.comm_key = std::move(*key);
    for (unsigned i = 0; i < count; ++i) {
        auto address = read_frame(from, Deadline(kOrders_ms));
        if (!address) return {};
        group.addresses.push_back(std::move(*address));
    }
    return group;
}

// Forms the group, and runs a barrier and a broadcast. Returns an error message, or "" on success.
std::string try_group(std::vector<std::unique_ptr<Member>>& members, Group& group) {
    try {
        if (group.addresses.size() == 1) {
            members.push_back(std::make_unique<Member>());
            group.addresses.push_back(members.back()->address());
        }
        const bool right = barrier_and_broadcast(members, group);
        for (const auto& member : members) member->leave();
        members.clear();
        return right ? "" : "the broadcast arrived with wrong bytes";
    } catch (const std::exception& failure) {
        return failure.what();
    }
}

}  // namespace

int run_group_process(int from, int to) {
    const Counters counters;
    std::vector<std::unique_ptr<Member>> members;
    std::string error, inner, address;
    try {
        members.push_back(std::make_unique<Member>());
        inner = members[0]->inner();
        address = members[0]->address();
    } catch (const std::exception& failure) {
        error = failure.what();
    }
    for (const std::string& text : {loaded_file(), error, inner, address})
        if (!write_frame(to, text)) return 1;
    auto group = error.empty() ? take_orders(from) : std::nullopt;
    if (!group) return 0;
    error = try_group(members, *group);
    auto counted = counters.read();
    return write_frame(to,
                       fmt::format("{} {} {} {} {}", group->addresses.size(), counted["datagrams_sent"],
                                   counted["fragments_by_multicast"], counted["fragments_repaired"], error))
               ? 0
               : 1;
}

}  // namespace mcastcoll::doctor
