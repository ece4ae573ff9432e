// Records that a program used the network: host names that it looked up, addresses that it
// connected to, and bytes transferred over TCP connections. The data itself is not recorded. The
// calls are made by the C library.
#include <errno.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "observe/shim/event.h"
#include "observe/shim/next_definition.h"
#include "observe/shim/recorded_opens.h"
#include "observe/shim/shim.h"
#include "observe/shim/system_call.h"

namespace assay::shim {
namespace {

// Used in keys instead of the epoch (recorded_opens.h).
constexpr std::uint64_t kNetworkName = 0x4E77'04C4'E770'4C4E;

// Recorded once per process.
void note_text(const char* text, std::size_t length) {
  if (!log_ready()) return;
  const std::uint64_t key = recorded_key(text, length, kNetworkName, kAbsolute);
  if (is_recorded(key)) return;
  record_text(wire::RecordOp::kNetwork, text, length);
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

// The text of an address, as it is recorded.
struct AddressText {
  char text[64];
  std::size_t length = 0;  // 0: an address of this machine, or not of a network
};

void put_ipv4(const unsigned char* bytes, unsigned port, AddressText& to) {
  if (bytes[0] == 127 || bytes[0] == 0) return;  // this machine
  char* end = to.text;
  for (int i = 0; i < 4; ++i) {
    if (i > 0) *end++ = '.';
    end = put_number(end, bytes[i], 10);
  }
  *end++ = ':';
  end = put_number(end, port, 10);
  to.length = static_cast<std::size_t>(end - to.text);
}

void put_ipv6(const unsigned char* bytes, unsigned port, AddressText& to) {
  static constexpr unsigned char kHere[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  static constexpr unsigned char kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  if (memcmp(bytes, kHere, sizeof kHere) == 0) return;
  if (memcmp(bytes, kMapped, sizeof kMapped) == 0) return put_ipv4(bytes + 12, port, to);
  char* end = to.text;
  *end++ = '[';
  for (int i = 0; i < 16; i += 2) {
    if (i > 0) *end++ = ':';
    end = put_number(end, static_cast<unsigned>(bytes[i] << 8U) | bytes[i + 1], 16);
  }
  *end++ = ']';
  *end++ = ':';
  end = put_number(end, port, 10);
  to.length = static_cast<std::size_t>(end - to.text);
}

// The kernel has accepted the address.
AddressText text_of(const sockaddr* address, socklen_t length) {
  AddressText text;
  if (address->sa_family == AF_INET && length >= sizeof(sockaddr_in)) {
    sockaddr_in to;
    memcpy(&to, address, sizeof to);
    put_ipv4(reinterpret_cast<const unsigned char*>(&to.sin_addr), ntohs(to.sin_port), text);
  } else if (address->sa_family == AF_INET6 && length >= sizeof(sockaddr_in6)) {
    sockaddr_in6 to;
    memcpy(&to, address, sizeof to);
    put_ipv6(to.sin6_addr.s6_addr, ntohs(to.sin6_port), text);
  }
  return text;
}

// Descriptors of connections to other machines, a bit for each. Higher ones are not followed.
constexpr int kFollowed = 4096;
constinit std::atomic<std::uint64_t> connections[kFollowed / 64] = {};

constexpr std::uint64_t bit_of(int descriptor) {
  return std::uint64_t{1} << (static_cast<unsigned>(descriptor) % 64);
}

bool is_connection(int descriptor) {
  return descriptor >= 0 && descriptor < kFollowed &&
         (connections[descriptor / 64].load(std::memory_order_relaxed) & bit_of(descriptor)) != 0;
}

// The kernel counts a TCP connection's bytes. They are queried when the descriptor is closed or the
// program ends, so that read and write need not be intercepted.
void note_traffic(int descriptor) {
  connections[descriptor / 64].fetch_and(~bit_of(descriptor), std::memory_order_relaxed);
  tcp_info info = {};
  socklen_t length = sizeof info;
  if (ordinary_call(SYS_getsockopt, descriptor, IPPROTO_TCP, TCP_INFO, word(&info),
                    word(&length)) != 0 ||
      length < offsetof(tcp_info, tcpi_bytes_retrans) + sizeof info.tcpi_bytes_retrans) {
    return;
  }
  sockaddr_storage peer = {};
  socklen_t peer_length = sizeof peer;
  if (ordinary_call(SYS_getpeername, descriptor, &peer, &peer_length) != 0) return;
  struct stat status;
  if (ordinary_call(SYS_fstat, descriptor, &status) != 0 || !log_ready()) return;
  const AddressText text = text_of(reinterpret_cast<const sockaddr*>(&peer), peer_length);
  if (text.length == 0) return;
  record_traffic(text.text, text.length, status.st_ino, info.tcpi_bytes_received,
                 info.tcpi_bytes_sent - info.tcpi_bytes_retrans);
}

__attribute__((destructor)) void note_open_connections() {
  for (int block = 0; block < kFollowed / 64; ++block) {
    std::uint64_t bits = connections[block].load(std::memory_order_relaxed);
    for (; bits != 0; bits &= bits - 1) {
      if (on()) note_traffic(block * 64 + __builtin_ctzll(bits));
    }
  }
}

using Close = int(int);
using Connect = int(int, const sockaddr*, socklen_t);
using GetAddress = int(const char*, const char*, const addrinfo*, addrinfo**);

}  // namespace
}  // namespace assay::shim

extern "C" {

ASSAY_EXPORTED int connect(int socket, const struct sockaddr* address, socklen_t length) {
  using namespace assay::shim;
  const int result = next_once<Connect>(Function::kConnect)(socket, address, length);
  const int why = errno;
  if ((result == 0 || why == EINPROGRESS) && on()) {
    const AddressText text = text_of(address, length);
    if (text.length > 0) note_text(text.text, text.length);
    if (text.length > 0 && socket >= 0 && socket < kFollowed) {
      connections[socket / 64].fetch_or(bit_of(socket), std::memory_order_relaxed);
    }
  }
  errno = why;
  return result;
}

ASSAY_EXPORTED int getaddrinfo(const char* name, const char* service, const struct addrinfo* hints,
                               struct addrinfo** found) {
  using namespace assay::shim;
  const int result = next_once<GetAddress>(Function::kGetaddrinfo)(name, service, hints, found);
  const int why = errno;
  // Numeric addresses are recorded by connect().
  const bool is_name = result == 0 && name != nullptr && strchr(name, ':') == nullptr &&
                       name[strspn(name, "0123456789.")] != 0 && strcmp(name, "localhost") != 0;
  if (is_name && on()) note_text(name, strlen(name));
  errno = why;
  return result;
}

ASSAY_EXPORTED int close(int descriptor) {
  using namespace assay::shim;
  if (__builtin_expect(is_connection(descriptor), 0) && on()) note_traffic(descriptor);
  if (auto* next = other<Close>(Function::kClose)) return next(descriptor);
  const long result = ordinary_call(SYS_close, descriptor);
  if (!failed(result)) return 0;
  errno = static_cast<int>(-result);
  return -1;
}

}  // extern "C"
