#include "group/secret_exchanges.h"

namespace mcastcoll::group {

bool SecretExchanges::on_datagram(Bytes datagram, const Source& source, Nanoseconds now) {
    if (exchanges_.empty()) return false;
    if (const auto request = wire::decode_key_request(datagram)) return on_request(*request, source, now);
    if (datagram.size() <= wire::kTagBytes) return false;
    const auto reply = wire::decode_key_reply(datagram.first(datagram.size() - wire::kTagBytes));
    return reply && on_reply(*reply, datagram, source);
}

// Matches requests of any sequence: a restarted process numbers its joins anew, and the secret belongs to a
// process, not to a join.
bool SecretExchanges::on_request(const wire::KeyRequest& request, const Source& source, Nanoseconds now) {
    bool is_known = false, may = false;
    for (SecretExchange* const one : exchanges_) {
        if (one->own().id.list_hash != request.id.list_hash) continue;
        is_known = true;
        if (!one->may_answer(request, source)) continue;
        may = true;
        if (!one->secret()) continue;
        one->answer(request, source, now);
        return true;
    }
    foreign_datagrams_ += is_known && !may;
    return is_known;
}

bool SecretExchanges::on_reply(const wire::KeyReply& reply, Bytes datagram, const Source& source) {
    bool is_known = false;
    for (SecretExchange* const one : exchanges_) {
        if (one->own().id != reply.id) continue;
        if (one->on_reply(reply, datagram, source)) return true;
        is_known = true;
    }
    foreign_datagrams_ += is_known;
    return is_known;
}

}  // namespace mcastcoll::group
