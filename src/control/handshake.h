// How a peer says who it is and both sides prove that they know the job's secret, as two state
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

// A rank that has failed before it could join comes only to say so.
enum class Purpose : std::uint8_t { kJoin = 0, kReportFailure = 1 };

// Who a rank is, in its own words.
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

// What came of a frame.
struct HandshakeStep {
  enum class Outcome {
    kContinue,  // send the bytes and wait for more
    kProven,    // the peer knows the secret
    kRefused,   // it is over: `reason` says why
    kTryAgain,  // the same, but it may go well another time
  };
  Outcome outcome = Outcome::kContinue;
  std::string bytes;   // to send; of a refusal by the server, too
  std::string reason;  // one line for people
};

// The bytes that tell a peer why it is refused, and whether it may try again.
std::string refusal_bytes(std::string_view reason, bool may_try_again = false);

class ServerHandshake {
 public:
  // The job and the secret must outlive it.
  ServerHandshake(const std::string& job, const Secret& secret, std::uint16_t port, Digest nonce)
      : job_(job), secret_(secret), port_(port), nonce_(nonce) {}

  HandshakeStep receive(const Frame& frame);
  // Once the peer is proven: that it may come in, and how long the others may still take.
  [[nodiscard]] std::string welcome_bytes(std::int64_t remaining_ms) const;
  // Known after Hello; to be believed once the peer is proven.
  [[nodiscard]] const Introduction& peer() const { return peer_; }
  [[nodiscard]] bool introduced() const { return !hello_.empty(); }

 private:
  HandshakeStep read_hello(const std::string& payload);

  const std::string& job_;
  const Secret& secret_;
  std::uint16_t port_;
  Digest nonce_;
  std::string hello_;
  Introduction peer_;
};

class ClientHandshake {
 public:
  ClientHandshake(const Introduction& self, const Secret& secret, Digest nonce);

  [[nodiscard]] std::string hello_bytes() const { return frame_bytes(Kind::kHello, hello_); }
  HandshakeStep receive(const Frame& frame);
  // Once rank 0 is proven: how long it still waits for others.
  [[nodiscard]] std::int64_t remaining_ms() const { return remaining_ms_; }

 private:
  const Secret& secret_;
  std::string hello_;
  std::string challenge_;  // empty until it came
  std::int64_t remaining_ms_ = 0;
};

}  // namespace assay::control
