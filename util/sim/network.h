// A network in virtual time. Hosts follow LogGP (Culler et al. 1993, Alexandrov et al. 1995): a processor is
// busy for an overhead with each packet sent or received, an adapter sends one byte per G and at most one
// packet per gap, a wire has a latency. All hosts are connected to one cut-through switch, which copies
// multicasts to its output ports and has a queue at each port: a multicast is dropped at a full queue, a
// message waits. A multicast costs at most one event, plus one for each run of receivers that it reaches at
// the same moment.
//
// By default a host is a machine with one processor. With a layout, hosts that share a machine are its
// processors, each with an inbox, behind one adapter and one port; messages between them go through memory,
// and the receiver copies. Machines may be in several sites, each with a switch, connected by links
// (WanLinks) that carry messages but no multicast.
//
// One class with many methods: a packet passes processor, adapter, switch, port and inbox in consecutive
// events, with one method per step.
//
// An endpoint is a member of a group on a host; several endpoints may share a host. The network does not
// depend on engines: packets are delivered to a Sink.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <utility>
#include <vector>

#include "event.h"
#include "event_queue.h"
#include "fault_injector.h"
#include "faults.h"
#include "link_traffic.h"
#include "model.h"
#include "sink.h"
#include "traffic_by_link.h"
#include "transmission.h"
#include "unmetered.h"
#include "wan_links.h"

namespace mcastcoll::sim {

class Network {
  public:
    struct Traffic {
        std::uint64_t datagrams = 0, messages = 0;
    };
    // Traffic sent by an endpoint and delivered to it. Here datagrams include unicast, and messages include
    // those inside a machine.
    struct Exchanged {
        Traffic sent, received;
        std::uint64_t bytes_sent = 0, bytes_received = 0;
    };

    // `host_of` and `group_of` have the host and the group of every endpoint; groups ascend. Each group has
    // its own multicast addresses.
    Network(const Model& model, const Faults& faults, std::vector<std::uint32_t> host_of,
            std::vector<std::uint32_t> group_of, std::uint64_t seed, Sink& sink);
    Network(const Network&) = delete;
    Network& operator=(const Network&) = delete;
    ~Network();

    Nanoseconds now() const { return now_; }
    const Traffic& traffic() const { return traffic_; }
    const std::vector<Exchanged>& exchanged() const { return exchanged_; }  // by endpoint
    // A digest of all deliveries and their times, to compare two runs.
    std::uint64_t digest() const { return digest_; }

    void send_message(std::uint32_t from, std::uint32_t to, Bytes header, Bytes payload);
    // Sends a datagram to one endpoint; it is lost with the probability of a multicast's copy.
    void send_datagram(std::uint32_t from, std::uint32_t to, Bytes bytes);
    // Multicasts to a range of the group: ranks that share a multicast address.
    void multicast(std::uint32_t from, std::uint32_t range, Bytes header, Bytes payload);
    static constexpr std::uint8_t kNoRange = UINT8_MAX;
    // Sets the range whose address an endpoint receives; kNoRange if it has no multicast socket.
    void listen(std::uint32_t endpoint, std::uint8_t range) { listens_to_[endpoint] = range; }
    // Returns false while the adapter's queue is full or a fault refuses: free_at() has the time to retry.
    bool may_send(std::uint32_t endpoint);
    Nanoseconds free_at(std::uint32_t endpoint) const;
    // The processor of this endpoint's host is busy until then.
    Nanoseconds busy_until(std::uint32_t endpoint) const { return hosts_[host_of_[endpoint]].processor_free; }
    // Keeps the processor of the endpoint's host busy for a time, which is longer on a slow host.
    void occupy(std::uint32_t endpoint, Nanoseconds time);
    void occupy_until(std::uint32_t endpoint, Nanoseconds time) {
        host_at(endpoint).processor_free = std::max(busy_until(endpoint), time);
    }
    std::uint32_t in_flight(std::uint32_t endpoint) const { return in_flight_[endpoint]; }
    std::uint32_t host_of(std::uint32_t endpoint) const { return host_of_[endpoint]; }
    TrafficByLink link_traffic() const { return {wan_.link_traffic(), into_}; }

    void wake(std::uint32_t endpoint, Nanoseconds at, std::uint32_t tag) { wake_run(endpoint, 1, at, tag); }
    void wake_run(std::uint32_t first, std::uint32_t count, Nanoseconds at, std::uint32_t tag) {
        const Unmetered own;
        schedule(Event::What::wake, at, first, count, nullptr, tag);
    }
    void kill(std::uint32_t host) { hosts_[host].dead = true; }
    // Delivers datagrams for a dead host to this endpoint from now on.
    void replace_process(std::uint32_t host, std::uint32_t endpoint) { hosts_[host].successor = endpoint; }
    bool dead(std::uint32_t endpoint) const { return host_dead(host_of_[endpoint]); }
    bool host_dead(std::uint32_t host) const { return hosts_[host].dead; }
    // Processes the next event; false if there is none.
    bool step();

  private:
    static constexpr std::uint32_t kNothing = UINT32_MAX;
    struct Host {
        Nanoseconds processor_free{};
        std::uint32_t machine = 0, site = 0;
        std::list<std::pair<Transmission*, std::uint32_t>> inbox{};  // with the receiving endpoint
        std::uint32_t datagrams_waiting = 0, successor = kNothing;
        float factor = 1;  // slowdown of this host
        bool dead = false;
    };
    struct Machine {
        Nanoseconds adapter_free{}, port_free{};
    };

    std::uint32_t host_count() const { return static_cast<std::uint32_t>(hosts_.size()); }
    Host& host_at(std::uint32_t endpoint) { return hosts_[host_of_[endpoint]]; }
    const Host& host_at(std::uint32_t endpoint) const { return hosts_[host_of_[endpoint]]; }
    Machine& machine_at(std::uint32_t endpoint) { return machines_[host_at(endpoint).machine]; }
    const Machine& machine_at(std::uint32_t endpoint) const { return machines_[host_at(endpoint).machine]; }
    Nanoseconds receiving(const Transmission& transmission) const;
    Nanoseconds scaled(const Host& host, Nanoseconds overhead) const;
    void begin_flight(const Transmission& transmission);
    void send(std::uint32_t from, Transmission* transmission);
    void release(Transmission* transmission);
    void schedule(Event::What what, Nanoseconds at, std::uint32_t first, std::uint32_t count,
                  Transmission* transmission, std::uint32_t tag = 0);
    void enter(Transmission* transmission, std::uint32_t site);
    void enter_message(Transmission* transmission);
    void enter_copies(Transmission* transmission);
    Nanoseconds through_port(std::uint32_t endpoint, const Transmission& transmission);
    void copy_to(std::uint32_t endpoint, Transmission* transmission);
    void add_to_run(std::uint32_t endpoint, Transmission* transmission, Nanoseconds at);
    void flush_run();
    void arrive(std::uint32_t endpoint, Transmission* transmission);
    void serve(std::uint32_t host);
    void deliver(std::uint32_t endpoint, Transmission* transmission);
    Nanoseconds serving_time(std::uint32_t host, Nanoseconds at) const;

    const Model model_;
    const Nanoseconds retransmission_;
    Sink& sink_;
    std::vector<Host> hosts_;
    FaultInjector injector_;
    std::vector<Machine> machines_;
    std::vector<LinkTraffic> into_;  // by machine, through its port
    WanLinks wan_;
    const std::vector<std::uint32_t> host_of_;
    std::vector<std::uint32_t> group_of_, group_begin_;
    std::vector<std::uint8_t> listens_to_;
    std::vector<std::uint32_t> in_flight_;  // transmissions of each endpoint in flight
    std::vector<Exchanged> exchanged_;
    EventQueue events_;
    Nanoseconds now_{1};
    Event run_;  // of arrivals, being collected
    Traffic traffic_;
    std::uint64_t digest_ = 14695981039346656037ULL;
};

}  // namespace mcastcoll::sim
