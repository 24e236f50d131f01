#include "hostset/invitation.h"

#include <cerrno>
#include <cstring>

#include "hostset/reader.h"
#include "hostset/writer.h"

namespace mcastcoll::hostset {

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

}  // namespace mcastcoll::hostset
