// How a peer identifies itself and both sides prove that they know the job's secret, as two state
// machines without sockets or clocks. Frames go in, bytes to send come out.
//
//   client: Hello (version, job, rank, ranks, host, pid, purpose, nonce)
//   server: Challenge (nonce)                                      or Refused (why)
//   client: Proof = HMAC(secret, "client" Hello Challenge)
//   server: Welcome (HMAC(secret, "server" Hello Challenge), time) or Refused (why)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "control/hmac.h"
#include "control/secret.h"
#include "control/wire.h"

namespace assay::control {

// A rank that failed before it could join connects only to report that.
enum class Purpose : std::uint8_t { kJoin = 0, kReportFailure = 1 };

// A rank's identity, as it states it.
struct Introduction {
  std::string job;
  int rank = 0;
  int ranks = 1;
  std::string host;
  std::int64_t pid = 0;
  Purpose purpose = Purpose::kJoin;

  bool operator==(const Introduction&) const = default;
};

inline constexpr std::size_t kMaxJob = 128;
inline constexpr std::size_t kMaxHost = 255;

// The result of processing a frame.
struct HandshakeResult {
  enum class Status {
    kContinue,       // send the bytes and wait for more
    kAuthenticated,  // the peer knows the secret
    kRefused,        // final; `reason` says why
    kTryAgain,       // refused, but a later attempt may succeed
  };
  Status status = Status::kContinue;
  std::string bytes;   // to send, also when the server refuses
  std::string reason;  // one line, for users
};

// The message that tells a peer why it is refused, and whether it may try again.
std::string refusal_bytes(std::string_view reason, bool may_try_again = false);

class ServerHandshake {
 public:
  // The job and the secret must outlive it.
  ServerHandshake(const std::string& job, const Secret& secret, std::uint16_t port, Sha256 nonce)
      : job_(job), secret_(secret), port_(port), nonce_(nonce) {}

  HandshakeResult receive(const Frame& frame);
  // Once the peer has authenticated: admits it, and says how long other ranks may still take to
  // join.
  [[nodiscard]] std::string welcome_bytes(std::int64_t remaining_ms) const;
  // Known after Hello; trustworthy only once the peer has authenticated.
  [[nodiscard]] const Introduction& peer() const { return peer_; }
  [[nodiscard]] bool introduced() const { return !hello_.empty(); }

 private:
  HandshakeResult read_hello(const std::string& payload);

  const std::string& job_;
  const Secret& secret_;
  std::uint16_t port_;
  Sha256 nonce_;
  std::string hello_;
  Introduction peer_;
};

class ClientHandshake {
 public:
  ClientHandshake(const Introduction& self, const Secret& secret, Sha256 nonce);

  [[nodiscard]] std::string hello_bytes() const { return frame_bytes(FrameKind::kHello, hello_); }
  HandshakeResult receive(const Frame& frame);
  // Once rank 0 has authenticated: how long it still waits for other ranks.
  [[nodiscard]] std::int64_t remaining_ms() const { return remaining_ms_; }

 private:
  const Secret& secret_;
  std::string hello_;
  std::string challenge_;  // empty until received
  std::int64_t remaining_ms_ = 0;
};

}  // namespace assay::control
