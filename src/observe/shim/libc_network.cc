// What a program gets over the network is not recorded; that it used the network is, with the names
// that it looked up and the addresses that it connected to. The calls are the C library's.
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "observe/shim/event.h"
#include "observe/shim/next_definition.h"
#include "observe/shim/recorded_opens.h"
#include "observe/shim/shim.h"

namespace assay::shim {
namespace {

// Takes the place of the epoch in keys.
constexpr std::uint64_t kNetworkName = 0x4E77'04C4'E770'4C4E;

// Once in a process.
void note_text(const char* text, std::size_t length) {
  if (!log_ready()) return;
  const std::uint64_t key = recorded_key(text, length, kNetworkName, kAbsolute);
  if (is_recorded(key)) return;
  record_text(wire::Op::kNetwork, text, length);
  remember(key);
}

char* put_number(char* to, unsigned value, unsigned base) {
  char digits[12];
  std::size_t count = 0;
  do {
    digits[count++] = "0123456789abcdef"[value % base];
    value /= base;
  } while (value > 0);
  while (count > 0) *to++ = digits[--count];
  return to;
}

void note_ipv4(const unsigned char* bytes, unsigned port) {
  if (bytes[0] == 127 || bytes[0] == 0) return;  // this machine
  char text[32];
  char* end = text;
  for (int i = 0; i < 4; ++i) {
    if (i > 0) *end++ = '.';
    end = put_number(end, bytes[i], 10);
  }
  *end++ = ':';
  end = put_number(end, port, 10);
  note_text(text, static_cast<std::size_t>(end - text));
}

void note_ipv6(const unsigned char* bytes, unsigned port) {
  static constexpr unsigned char kHere[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  static constexpr unsigned char kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  if (memcmp(bytes, kHere, sizeof kHere) == 0) return;
  if (memcmp(bytes, kMapped, sizeof kMapped) == 0) return note_ipv4(bytes + 12, port);
  char text[64];
  char* end = text;
  *end++ = '[';
  for (int i = 0; i < 16; i += 2) {
    if (i > 0) *end++ = ':';
    end = put_number(end, static_cast<unsigned>(bytes[i] << 8U) | bytes[i + 1], 16);
  }
  *end++ = ']';
  *end++ = ':';
  end = put_number(end, port, 10);
  note_text(text, static_cast<std::size_t>(end - text));
}

// The kernel has accepted the address.
void note_address(const sockaddr* address, socklen_t length) {
  if (address->sa_family == AF_INET && length >= sizeof(sockaddr_in)) {
    sockaddr_in to;
    memcpy(&to, address, sizeof to);
    note_ipv4(reinterpret_cast<const unsigned char*>(&to.sin_addr), ntohs(to.sin_port));
  } else if (address->sa_family == AF_INET6 && length >= sizeof(sockaddr_in6)) {
    sockaddr_in6 to;
    memcpy(&to, address, sizeof to);
    note_ipv6(to.sin6_addr.s6_addr, ntohs(to.sin6_port));
  }
}

using Connect = int(int, const sockaddr*, socklen_t);
using GetAddress = int(const char*, const char*, const addrinfo*, addrinfo**);

}  // namespace
}  // namespace assay::shim

extern "C" {

ASSAY_EXPORTED int connect(int socket, const struct sockaddr* address, socklen_t length) {
  using namespace assay::shim;
  const int result = next_once<Connect>(Function::kConnect)(socket, address, length);
  const int why = errno;
  if ((result == 0 || why == EINPROGRESS) && on()) note_address(address, length);
  errno = why;
  return result;
}

ASSAY_EXPORTED int getaddrinfo(const char* name, const char* service, const struct addrinfo* hints,
                               struct addrinfo** found) {
  using namespace assay::shim;
  const int result = next_once<GetAddress>(Function::kGetaddrinfo)(name, service, hints, found);
  const int why = errno;
  // Addresses are recorded when they are used.
  const bool is_name = result == 0 && name != nullptr && strchr(name, ':') == nullptr &&
                       name[strspn(name, "0123456789.")] != 0 && strcmp(name, "localhost") != 0;
  if (is_name && on()) note_text(name, strlen(name));
  errno = why;
  return result;
}

}  // extern "C"
