#include "hostset/encoding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "wire/bytes.h"

namespace mcastcoll::hostset {
namespace {

constexpr std::size_t kLengthBytes = 4, kTagBytes = 16, kHeaderBytes = kLengthBytes + kTagBytes;

std::string big_endian(std::uint64_t value) {
    std::string bytes(sizeof value, '\0');
    wire::put(reinterpret_cast<std::byte*>(bytes.data()), value);
    return bytes;
}

std::string tag_of(const wire::Key& key, std::uint64_t number, std::string_view message) {
    std::string numbered = big_endian(number);
    numbered.append(message);
    const wire::Key whole = wire::hmac(key, bytes_of(numbered));
    return {reinterpret_cast<const char*>(whole.data()), kTagBytes};
}

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kBlank = " \t\r";
    const std::size_t begin = text.find_first_not_of(kBlank);
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    for (std::size_t end = 0; end != std::string_view::npos; text.remove_prefix(end + 1)) {
        end = text.find(separator);
        parts.push_back(text.substr(0, end));
        if (end == std::string_view::npos) break;
    }
    return parts;
}

// Characters allowed in a host's name or address; the agent gets the name as a separate word.
bool is_host(std::string_view name) {
    const auto fits = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               std::string_view(".-_:@%").find(c) != std::string_view::npos;
    };
    return !name.empty() && name.size() <= 255 && name.front() != '-' &&
           std::all_of(name.begin(), name.end(), fits);
}

}  // namespace

Writer& Writer::number(std::uint64_t value) {
    bytes_ += big_endian(value);
    return *this;
}

Writer& Writer::text(std::string_view value) {
    number(value.size());
    bytes_.append(value);
    return *this;
}

std::string_view Reader::take(std::size_t size) {
    ok_ = ok_ && size <= rest_.size();
    if (!ok_) return {};
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
}

std::uint64_t Reader::number() {
    const std::string_view bytes = take(sizeof(std::uint64_t));
    return ok_ ? wire::get<std::uint64_t>(reinterpret_cast<const std::byte*>(bytes.data())) : 0;
}

std::string_view Reader::text() {
    return take(number());
}

std::string Sealer::seal(std::string_view message) {
    std::string sealed(kLengthBytes, '\0');
    wire::put(reinterpret_cast<std::byte*>(sealed.data()), static_cast<std::uint32_t>(message.size()));
    sealed += tag_of(key_, number_++, message);
    sealed.append(message);
    return sealed;
}

Result<std::optional<std::string>> Opener::next() {
    if (waiting_.size() < kHeaderBytes) return std::optional<std::string>();
    const auto length = wire::get<std::uint32_t>(reinterpret_cast<const std::byte*>(waiting_.data()));
    if (length > max_) return Error{EMSGSIZE, fmt::format("a message of {} bytes", length)};
    if (waiting_.size() < kHeaderBytes + length) return std::optional<std::string>();
    std::string message = waiting_.substr(kHeaderBytes, length);
    const std::string tag = tag_of(key_, number_++, message);
    if (!wire::are_equal(bytes_of(tag), bytes_of(waiting_).subspan(kLengthBytes, kTagBytes)))
        return Error{EBADMSG, "a message without the host set's token"};
    waiting_.erase(0, kHeaderBytes + length);
    return std::optional(std::move(message));
}

std::string as_bytes_of(const Invitation& invitation) {
    Writer writer;
    writer.text({reinterpret_cast<const char*>(invitation.token.data()), invitation.token.size()});
    writer.number(invitation.rank).number(invitation.environment.size());
    for (const std::string& variable : invitation.environment) writer.text(variable);
    return writer.take();
}

Result<Invitation> parse_invitation(std::string_view bytes) {
    Invitation invitation;
    Reader reader(bytes);
    const std::string_view token = reader.text();
    invitation.rank = static_cast<std::uint32_t>(reader.number());
    for (std::uint64_t left = reader.number(); left > 0 && reader.ok(); --left)
        invitation.environment.emplace_back(reader.text());
    if (!reader.at_end() || token.size() != invitation.token.size())
        return Error{EBADMSG, "no invitation on standard input: --join is for processes that --hosts starts"};
    std::memcpy(invitation.token.data(), token.data(), token.size());
    return invitation;
}

Result<std::vector<std::string>> parse_hosts(std::string_view text, char separator) {
    std::vector<std::string> hosts;
    for (std::string_view part : split(text, separator)) {
        if (separator == '\n') part = part.substr(0, part.find('#'));
        part = trimmed(part);
        if (part.empty() && separator == '\n') continue;
        if (!is_host(part)) return Error{EINVAL, fmt::format("'{}' is not the name of a host", part)};
        if (std::find(hosts.begin(), hosts.end(), part) != hosts.end())
            return Error{EINVAL, fmt::format("host {} is named twice", part)};
        hosts.emplace_back(part);
    }
    if (hosts.empty()) return Error{EINVAL, "no host is named"};
    if (hosts.size() > kMaxHosts)
        return Error{EINVAL, fmt::format("{} hosts: at most {} are allowed", hosts.size(), kMaxHosts)};
    return hosts;
}

Result<std::vector<sites::Endpoint>> parse_endpoints(std::string_view text) {
    std::vector<sites::Endpoint> endpoints;
    for (const std::string_view part : split(text, ',')) {
        auto endpoint = sites::Endpoint::parse(part);
        if (!endpoint) return endpoint.error();
        if (endpoint.value().port == 0) return Error{EINVAL, fmt::format("'{}' has no port", part)};
        endpoints.push_back(endpoint.value());
    }
    return endpoints;
}

std::string to_string(const std::vector<sites::Endpoint>& endpoints) {
    std::string text;
    for (const sites::Endpoint& endpoint : endpoints)
        text += (text.empty() ? "" : ",") + endpoint.to_string();
    return text;
}

std::string as_shell_word(std::string_view word) {
    std::string text = "'";
    for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return text + "'";
}

}  // namespace mcastcoll::hostset
