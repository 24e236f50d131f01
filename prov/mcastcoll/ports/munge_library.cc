#include "ports/munge_library.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <munge.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace mcastcoll::ports {
namespace {

// Lifetime of a credential in seconds. Only members of a join need the credential, but the clocks of a
// cluster's hosts differ.
constexpr int kLifetime = 300;

struct Library {
    decltype(&::munge_encode) encode = nullptr;
    decltype(&::munge_decode) decode = nullptr;
    decltype(&::munge_strerror) strerror = nullptr;
    decltype(&::munge_ctx_create) create = nullptr;
    decltype(&::munge_ctx_destroy) destroy = nullptr;
    decltype(&::munge_ctx_strerror) context_error = nullptr;
    decltype(&::munge_ctx_get) get = nullptr;
    decltype(&::munge_ctx_set) set = nullptr;
    std::string why_not;

    template <typename Function>
    void find(void* library, Function& function, const char* name) {
        function = reinterpret_cast<Function>(::dlsym(library, name));
        if (function == nullptr && why_not.empty()) why_not = fmt::format("libmunge has no {}", name);
    }
};

// Returns the loaded library, which is never closed or destroyed at exit, because threads may still be using
// it.
const Library& library() {
    static const Library& loaded = *new Library([] {
        Library found;
        void* const library = ::dlopen("libmunge.so.2", RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) {
            const char* const why = ::dlerror();
            found.why_not = why != nullptr ? why : "libmunge.so.2 cannot be loaded";
            return found;
        }
        found.find(library, found.encode, "munge_encode");
        found.find(library, found.decode, "munge_decode");
        found.find(library, found.strerror, "munge_strerror");
        found.find(library, found.create, "munge_ctx_create");
        found.find(library, found.destroy, "munge_ctx_destroy");
        found.find(library, found.context_error, "munge_ctx_strerror");
        found.find(library, found.get, "munge_ctx_get");
        found.find(library, found.set, "munge_ctx_set");
        return found;
    }());
    return loaded;
}

struct FreeContext {
    void operator()(munge_ctx* context) const { library().destroy(context); }
};
using Context = std::unique_ptr<munge_ctx, FreeContext>;

struct Free {
    void operator()(void* memory) const { std::free(memory); }
};

MungeAnswer no(MungeCall::State state, munge_err_t error, munge_ctx* context) {
    // The context has a more detailed message if the error comes from munged.
    const char* text = context != nullptr ? library().context_error(context) : nullptr;
    if (text == nullptr) text = library().strerror(error);
    return {state, {}, fmt::format("MUNGE: {}", text)};
}

// Returns null if memory is lacking or the name of the socket is too long.
Context make_context(const std::string& socket) {
    Context context(library().create());
    if (context && !socket.empty() &&
        library().set(context.get(), MUNGE_OPT_SOCKET, socket.c_str()) != EMUNGE_SUCCESS)
        context.reset();
    return context;
}

wire::ByteString bytes_of(const void* at, std::size_t size) {
    const auto* const from = static_cast<const std::byte*>(at);
    return {from, from + size};
}

// True for an error of the credential, false for an error of munged or of the connection to munged.
bool is_of_credential(munge_err_t error) {
    return error >= EMUNGE_BAD_CRED;
}

// True if this user made the credential and only this user can open it; munged reports both facts. If other
// users could read its content, they might have made this user's process create it for another purpose.
bool is_for_this_user_alone(munge_ctx* context, uid_t maker) {
    uid_t reader = MUNGE_UID_ANY;
    int cipher = MUNGE_CIPHER_NONE;
    return library().get(context, MUNGE_OPT_UID_RESTRICTION, &reader) == EMUNGE_SUCCESS &&
           library().get(context, MUNGE_OPT_CIPHER_TYPE, &cipher) == EMUNGE_SUCCESS &&
           cipher != MUNGE_CIPHER_NONE && maker == ::geteuid() && reader == ::geteuid();
}

}  // namespace

MungeAnswer munge_encode_bytes(const std::string& socket, Bytes payload) {
    if (!library().why_not.empty()) return {.reason = library().why_not};
    const Context context = make_context(socket);
    if (!context) return {.reason = "MUNGE: cannot create a context"};
    // The administrator's defaults may leave the content unencrypted or open for all users.
    munge_err_t error = library().set(context.get(), MUNGE_OPT_UID_RESTRICTION, ::geteuid());
    if (error == EMUNGE_SUCCESS)
        error = library().set(context.get(), MUNGE_OPT_CIPHER_TYPE, int{MUNGE_CIPHER_AES256});
    if (error == EMUNGE_SUCCESS)
        error = library().set(context.get(), MUNGE_OPT_MAC_TYPE, int{MUNGE_MAC_SHA256});
    if (error == EMUNGE_SUCCESS)
        error = library().set(context.get(), MUNGE_OPT_ZIP_TYPE, int{MUNGE_ZIP_NONE});
    if (error == EMUNGE_SUCCESS) error = library().set(context.get(), MUNGE_OPT_TTL, kLifetime);
    char* made = nullptr;
    if (error == EMUNGE_SUCCESS)
        error = library().encode(&made, context.get(), payload.data(), static_cast<int>(payload.size()));
    const std::unique_ptr<char, Free> credential(made);
    if (error != EMUNGE_SUCCESS) return no(MungeCall::State::unavailable, error, context.get());
    return {MungeCall::State::done, bytes_of(credential.get(), std::strlen(credential.get())), ""};
}

MungeAnswer munge_decode_bytes(const std::string& socket, Bytes credential) {
    if (!library().why_not.empty()) return {.reason = library().why_not};
    const Context context = make_context(socket);
    if (!context) return {.reason = "MUNGE: cannot create a context"};
    const std::string text(reinterpret_cast<const char*>(credential.data()), credential.size());
    void* read = nullptr;
    int size = 0;
    uid_t maker = MUNGE_UID_ANY;
    gid_t group = MUNGE_GID_ANY;
    const munge_err_t error = library().decode(text.c_str(), context.get(), &read, &size, &maker, &group);
    const std::unique_ptr<void, Free> payload(read);
    // EMUNGE_CRED_REPLAYED: another process of this host has opened the credential before, as all members on
    // a host do (group/secret_exchange.h).
    if (error != EMUNGE_SUCCESS && error != EMUNGE_CRED_REPLAYED)
        return no(is_of_credential(error) ? MungeCall::State::refused : MungeCall::State::unavailable, error,
                  context.get());
    if (payload == nullptr || size <= 0 || !is_for_this_user_alone(context.get(), maker))
        return {MungeCall::State::refused, {}, "MUNGE: the credential is not restricted to this user"};
    return {MungeCall::State::done, bytes_of(payload.get(), static_cast<std::size_t>(size)), ""};
}

}  // namespace mcastcoll::ports
