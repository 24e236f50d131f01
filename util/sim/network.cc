#include "network.h"

#include <cassert>

#include "wire/packet.h"

namespace mcastcoll::sim {
namespace {

std::uint32_t one_more_than(const std::vector<std::uint32_t>& numbers, std::uint32_t min) {
    return numbers.empty() ? min : *std::max_element(numbers.begin(), numbers.end()) + 1;
}

}  // namespace

Network::Network(const Model& model, const Faults& faults, std::vector<std::uint32_t> host_of,
                 std::vector<std::uint32_t> group_of, std::uint64_t seed, Sink& sink)
    : model_(model),
      retransmission_(model.retransmission.value > 0 ? model.retransmission
                                                     : Nanoseconds{4 * model.round_trip(64).value}),
      sink_(sink),
      hosts_(one_more_than(host_of, 1)),
      injector_(faults, host_count(), seed),
      machines_(one_more_than(model.layout.machine_of, host_count())),
      into_(machines_.size()),
      wan_(one_more_than(model.layout.site_of, 1), model.wan),
      host_of_(std::move(host_of)),
      group_of_(std::move(group_of)),
      listens_to_(host_of_.size()),
      in_flight_(host_of_.size()),
      exchanged_(host_of_.size()) {
    assert(group_of_.size() == host_of_.size());
    if (model.shared_address) std::fill(group_of_.begin(), group_of_.end(), 0);
    for (std::uint32_t endpoint = 0; endpoint < group_of_.size(); ++endpoint)
        while (group_begin_.size() <= group_of_[endpoint]) group_begin_.push_back(endpoint);
    group_begin_.push_back(static_cast<std::uint32_t>(group_of_.size()));
    for (std::uint32_t host = 0; host < host_count(); ++host) {
        hosts_[host].machine = model.layout.machine(host);
        hosts_[host].site = model.layout.site(host);
    }
    for (const Faults::Slow& slow : faults.slow)
        if (slow.host < host_count()) hosts_[slow.host].factor = slow.factor;
}

Network::~Network() {
    while (!events_.empty()) {
        const Event event = events_.pop();
        if (event.transmission != nullptr) event.transmission->drop();
    }
    for (const Host& host : hosts_)
        for (const auto& [transmission, endpoint] : host.inbox) transmission->drop();
}

Nanoseconds Network::scaled(const Host& host, Nanoseconds overhead) const {
    if (host.factor == 1) return overhead;
    return {
        static_cast<std::int64_t>(static_cast<double>(overhead.value) * static_cast<double>(host.factor))};
}

void Network::schedule(Event::What what, Nanoseconds at, std::uint32_t first, std::uint32_t count,
                       Transmission* transmission, std::uint32_t tag) {
    Event event{};
    event.at = std::max(at, now_);
    event.what = static_cast<std::uint64_t>(what) & 15;
    event.tag = tag & 15;
    event.first = first;
    event.count = count;
    event.transmission = transmission;
    events_.push(event);
}

void Network::release(Transmission* transmission) {
    const std::uint32_t from = transmission->from, to = transmission->to;
    const bool message = transmission->way == Transmission::Way::message;
    if (!transmission->drop()) return;
    --in_flight_[from];
    if (message) sink_.on_sent(from, to);
}

void Network::occupy(std::uint32_t endpoint, Nanoseconds time) {
    Host& host = host_at(endpoint);
    host.processor_free = std::max(host.processor_free, now_) + scaled(host, time);
}

bool Network::may_send(std::uint32_t endpoint) {
    const Nanoseconds full = model_.wire_time(model_.send_buffer);
    return machine_at(endpoint).adapter_free - now_ <= full && !injector_.refuses(now_);
}

Nanoseconds Network::free_at(std::uint32_t endpoint) const {
    const Nanoseconds half = model_.wire_time(model_.send_buffer / 2);
    return std::max(now_ + model_.latency, machine_at(endpoint).adapter_free - half);
}

void Network::begin_flight(const Transmission& transmission) {
    ++in_flight_[transmission.from];
    Exchanged& exchanged = exchanged_[transmission.from];
    ++(transmission.way == Transmission::Way::message ? exchanged.sent.messages : exchanged.sent.datagrams);
    exchanged.bytes_sent += transmission.size();
}

// Passes a transmission through the sender's processor, its adapter and the wire to the switch.
void Network::send(std::uint32_t from, Transmission* transmission) {
    Host& host = host_at(from);
    Machine& machine = machine_at(from);
    begin_flight(*transmission);
    occupy(from, model_.send_overhead);
    const Nanoseconds start = std::max(host.processor_free, machine.adapter_free);
    machine.adapter_free = start + std::max(model_.gap, model_.wire_time(transmission->size()));
    schedule(Event::What::enter, start + Nanoseconds{model_.latency.value / 2}, host.site, 1, transmission);
}

// The time of the receiver's processor for a transmission.
Nanoseconds Network::receiving(const Transmission& transmission) const {
    if (!transmission.local) return model_.receive_overhead;
    return model_.memory.copy_time(transmission.size());
}

void Network::send_datagram(std::uint32_t from, std::uint32_t to, Bytes bytes) {
    const Unmetered own;
    send(from, Transmission::make(Transmission::Way::datagram, from, to, bytes));
}

void Network::send_message(std::uint32_t from, std::uint32_t to, Bytes header, Bytes payload) {
    const Unmetered own;
    Transmission* transmission = Transmission::make(Transmission::Way::message, from, to, header, payload);
    // Without a layout, hosts are separate machines, and endpoints on a host communicate through its adapter.
    transmission->local = !model_.layout.machine_of.empty() && host_at(from).machine == host_at(to).machine;
    if (!transmission->local) {
        ++traffic_.messages;
        return send(from, transmission);
    }
    begin_flight(*transmission);
    occupy(from, model_.memory.overhead);
    schedule(Event::What::arrive, busy_until(from) + model_.memory.latency, to, 1, transmission);
}

void Network::multicast(std::uint32_t from, std::uint32_t range, Bytes header, Bytes payload) {
    const Unmetered own;
    Transmission* transmission =
        Transmission::make(Transmission::Way::multicast, from, group_of_[from], header, payload);
    transmission->range = static_cast<std::uint8_t>(range);
    ++traffic_.datagrams;
    send(from, transmission);
}

// Takes a transmission into a site's switch. A transmission for another site takes the link to that site
// first.
void Network::enter(Transmission* transmission, std::uint32_t site) {
    if (transmission->way == Transmission::Way::multicast) return enter_copies(transmission);
    const std::uint32_t to = host_at(transmission->to).site;
    if (site == to)
        return transmission->way == Transmission::Way::datagram ? enter_copies(transmission)
                                                                : enter_message(transmission);
    const std::uint32_t next = wan_.next(site, to);
    const Nanoseconds onward =
        next == to ? model_.wire_time(transmission->size()) : wan_.wire_time(transmission->size());
    schedule(Event::What::enter, wan_.carry(site, next, *transmission, now_, onward), next, 1, transmission);
}

// Passes the output port to the receiver and the wire behind it; returns the arrival time. The receive
// overhead is included, so that an idle processor needs one event per transmission.
Nanoseconds Network::through_port(std::uint32_t endpoint, const Transmission& transmission) {
    Machine& machine = machine_at(endpoint);
    machine.port_free = std::max(machine.port_free, now_) + model_.wire_time(transmission.size());
    into_[host_at(endpoint).machine].add(transmission);
    const Nanoseconds half = model_.latency - Nanoseconds{model_.latency.value / 2};
    return machine.port_free + half + model_.receive_overhead;
}

void Network::enter_message(Transmission* transmission) {
    const Faults& faults = injector_.faults();
    if (faults.lose_message &&
        faults.lose_message(wire::decode(transmission->bytes()).header, rank_of(transmission->to)))
        return release(transmission);
    const Nanoseconds at =
        injector_.message_arrival(through_port(transmission->to, *transmission), host_of_[transmission->from],
                                  host_of_[transmission->to], retransmission_);
    schedule(Event::What::arrive, at, transmission->to, 1, transmission);
}

// Copies a datagram to its endpoint, or a multicast to every receiver at the site.
void Network::enter_copies(Transmission* transmission) {
    run_ = Event{};
    if (transmission->way == Transmission::Way::datagram) {
        copy_to(transmission->to, transmission);
    } else if (!injector_.loses_for_all(now_)) {
        for (std::uint32_t to = group_begin_[transmission->to]; to < group_begin_[transmission->to + 1];
             ++to) {
            if (listens_to_[to] != transmission->range || (to == transmission->from && !model_.own_copies))
                continue;
            if (host_at(to).site == host_at(transmission->from).site) copy_to(to, transmission);
        }
    }
    flush_run();
    release(transmission);
}

// Passes one copy through the output port of its receiver.
void Network::copy_to(std::uint32_t endpoint, Transmission* transmission) {
    const std::uint32_t receiver = host_of_[endpoint];
    if (host_dead(receiver) && hosts_[receiver].successor == kNothing) return;
    const bool fault_free = injector_.fault_free(now_) || endpoint == transmission->from;
    const Faults& faults = injector_.faults();
    if (!fault_free) {
        const bool by_hand = faults.drop && transmission->way == Transmission::Way::multicast &&
                             now_ < faults.heal_at &&
                             faults.drop(wire::decode(transmission->bytes()).header, rank_of(endpoint));
        if (by_hand || injector_.loses_copy(now_, host_of_[transmission->from], receiver)) return;
    }
    for (int copies = !fault_free && injector_.duplicates(now_) ? 2 : 1; copies > 0; --copies) {
        if (machine_at(endpoint).port_free - now_ > model_.wire_time(model_.port_buffer)) continue;
        const Nanoseconds at = through_port(endpoint, *transmission);
        if (fault_free) {
            add_to_run(endpoint, transmission, at);
            continue;
        }
        const Nanoseconds late = at + injector_.copy_delay(now_);
        if (!injector_.corrupts(now_)) {
            add_to_run(endpoint, transmission, late);
            continue;
        }
        Transmission* damaged = transmission->copy();
        ++in_flight_[damaged->from];
        damaged->data()[injector_.draw() % damaged->size()] ^= std::byte{0x10};
        schedule(Event::What::arrive, late, endpoint, 1, damaged);
    }
}

void Network::add_to_run(std::uint32_t endpoint, Transmission* transmission, Nanoseconds at) {
    if (run_.transmission != nullptr && run_.at == at && run_.first + run_.count == endpoint) {
        ++run_.count;
        return;
    }
    flush_run();
    run_.transmission = transmission;
    run_.at = at;
    run_.first = endpoint;
    run_.count = 1;
}

void Network::flush_run() {
    if (run_.transmission == nullptr) return;
    run_.transmission->keep();
    schedule(Event::What::arrive, run_.at, run_.first, run_.count, run_.transmission);
    run_.transmission = nullptr;
}

// Returns when a host that polls at intervals reads input with arrival time `at`.
Nanoseconds Network::serving_time(std::uint32_t host, Nanoseconds at) const {
    if (host >= model_.read_every.size() || model_.read_every[host].value <= 0) return at;
    const std::int64_t every = model_.read_every[host].value;
    return {(at.value + every - 1) / every * every};
}

// Delivers at once if the processor has been idle for the receive overhead, otherwise through the inbox.
void Network::arrive(std::uint32_t endpoint, Transmission* transmission) {
    const std::uint32_t number = host_of_[endpoint];
    Host& host = hosts_[number];
    if (host.dead) {
        if (transmission->way == Transmission::Way::datagram && host.successor != kNothing)
            arrive(host.successor, transmission);
        return;
    }
    const bool empty = host.inbox.empty();
    const Nanoseconds overhead = receiving(*transmission);
    // Input from the wire has the overhead in its time already; memory is copied from now on.
    const Nanoseconds begun = transmission->local ? now_ : now_ - overhead;
    const Nanoseconds done = std::max(begun, host.processor_free) + scaled(host, overhead);
    const Nanoseconds served = empty ? serving_time(number, done) : kNever;
    if (served <= now_) return deliver(endpoint, transmission);
    const bool unreliable = transmission->way != Transmission::Way::message;
    if (unreliable && host.datagrams_waiting >= model_.socket_buffer) return;
    host.datagrams_waiting += unreliable;
    transmission->keep();
    host.inbox.emplace_back(transmission, endpoint);
    if (empty) schedule(Event::What::serve, served, number, 1, nullptr);
}

void Network::serve(std::uint32_t number) {
    Host& host = hosts_[number];
    const auto [transmission, endpoint] = host.inbox.front();
    host.inbox.pop_front();
    host.datagrams_waiting -= transmission->way != Transmission::Way::message;
    if (!host.dead) deliver(endpoint, transmission);
    release(transmission);
    if (host.inbox.empty()) return;
    const Nanoseconds overhead = receiving(*host.inbox.front().first);
    const Nanoseconds next = std::max(host.processor_free, now_) + scaled(host, overhead);
    schedule(Event::What::serve, next, number, 1, nullptr);
}

void Network::deliver(std::uint32_t endpoint, Transmission* transmission) {
    Host& host = hosts_[host_of_[endpoint]];
    host.processor_free = std::max(host.processor_free, now_);
    auto mix = [this](std::uint64_t value) { digest_ = (digest_ ^ value) * 1099511628211ULL; };
    mix(static_cast<std::uint64_t>(now_.value));
    mix(std::uint64_t{endpoint} << 32 | transmission->size());
    mix(wire::add_to_crc(0, transmission->bytes()));
    Exchanged& exchanged = exchanged_[endpoint];
    ++(transmission->way == Transmission::Way::message ? exchanged.received.messages
                                                       : exchanged.received.datagrams);
    exchanged.bytes_received += transmission->size();
    switch (transmission->way) {
        case Transmission::Way::message:
            return sink_.on_message(endpoint, transmission->from, transmission->bytes());
        case Transmission::Way::datagram:
            return sink_.on_datagram(endpoint, transmission->from, transmission->bytes());
        case Transmission::Way::multicast:
            return sink_.on_packet(endpoint, transmission->bytes());
    }
}

bool Network::step() {
    if (events_.empty()) return false;
    const Event event = events_.pop();
    assert(event.at >= now_);
    now_ = event.at;
    switch (static_cast<Event::What>(event.what)) {
        case Event::What::enter:
            enter(event.transmission, event.first);
            break;
        case Event::What::arrive:
            for (std::uint32_t i = 0; i < event.count; ++i) arrive(event.first + i, event.transmission);
            release(event.transmission);
            break;
        case Event::What::serve:
            serve(event.first);
            break;
        case Event::What::wake:
            for (std::uint32_t i = 0; i < event.count; ++i)
                if (!dead(event.first + i))
                    sink_.on_wake(event.first + i, static_cast<std::uint32_t>(event.tag));
            break;
    }
    return true;
}

}  // namespace mcastcoll::sim
