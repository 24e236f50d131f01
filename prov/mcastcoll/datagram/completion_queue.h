// The completion queue of datagram endpoints. It has as many places as were asked for, and never runs over:
// who would complete to a full one waits, in the kernel's buffers if it is a message.
#pragma once

#include <rdma/fi_eq.h>

#include <cstddef>
#include <vector>

#include "datagram/object.h"
#include "datagram/waiter.h"

namespace mcastcoll::ofi::datagram {

class Domain;

struct Completion {
    void* op_context = nullptr;
    std::uint64_t flags = 0;
    std::size_t length = 0;
    void* buffer = nullptr;
    fi_addr_t source = FI_ADDR_NOTAVAIL;
    int error = 0;             // positive FI_E*
    std::size_t left_out = 0;  // bytes that the buffer had no room for
};

class CompletionQueue : public fid_cq {
  public:
    static int open(Domain& domain, fi_cq_attr* attr, fid_cq** cq, void* context);
    // Null when the object is no queue of ours.
    static CompletionQueue* find(Handle& object);

    // All with the domain's lock held.
    std::size_t room() const { return ring_.size() - count_; }
    void push(const Completion& completion);

    Domain& domain() const { return domain_; }
    Waiter& waiter() { return waiter_; }
    // For fi_trywait(). True: there is something to read.
    bool prepare_wait();
    Users users;

  private:
    CompletionQueue(Domain& domain, std::size_t size, fi_cq_format format);
    static CompletionQueue& of(fid_cq& cq) { return static_cast<CompletionQueue&>(cq); }
    static int close(Handle* object) noexcept;
    static int control(Handle* object, int command, void* argument) noexcept;
    static ssize_t read(fid_cq* cq, void* buffer, std::size_t count) noexcept;
    static ssize_t readfrom(fid_cq* cq, void* buffer, std::size_t count, fi_addr_t* source) noexcept;
    static ssize_t readerr(fid_cq* cq, fi_cq_err_entry* entry, std::uint64_t flags) noexcept;
    static ssize_t sread(fid_cq* cq, void* buffer, std::size_t count, const void* condition,
                         int timeout) noexcept;
    static ssize_t sreadfrom(fid_cq* cq, void* buffer, std::size_t count, fi_addr_t* source,
                             const void* condition, int timeout) noexcept;
    static int signal(fid_cq* cq) noexcept;
    static const char* describe(fid_cq* cq, int provider_error, const void* data, char* buffer,
                                std::size_t length) noexcept;

    ssize_t take(void* buffer, std::size_t count, fi_addr_t* source);
    std::byte* write(std::byte* at, const Completion& completion) const;

    Domain& domain_;
    const fi_cq_format format_;
    Waiter waiter_;
    std::vector<Completion> ring_;
    std::size_t head_ = 0, count_ = 0;
};

}  // namespace mcastcoll::ofi::datagram
