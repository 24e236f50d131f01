// Raw sockets of an intruder, and the secret that the intruder lacks.
#pragma once

#include <netinet/in.h>

#include <string>
#include <vector>

#include "base/types.h"

namespace mcastcoll::fabtest {

// Returns a UDP datagram with its IP header, for a raw socket.
std::vector<std::byte> raw_packet(Bytes payload, const sockaddr_in& from, const sockaddr_in& to);

// Sends UDP datagrams from any address and port. Sends no packet without the privilege for raw sockets.
class RawSender {
  public:
    RawSender();
    ~RawSender();
    RawSender(const RawSender&) = delete;
    RawSender& operator=(const RawSender&) = delete;
    void send(Bytes payload, const sockaddr_in& from, const sockaddr_in& to) const;

  private:
    int descriptor_;
};

// A key file with a random secret, which exists as long as this object.
class SecretFile {
  public:
    SecretFile();
    ~SecretFile();
    SecretFile(const SecretFile&) = delete;
    SecretFile& operator=(const SecretFile&) = delete;
    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

}  // namespace mcastcoll::fabtest
