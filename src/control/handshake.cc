#include "control/handshake.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace assay::control {
namespace {

constexpr std::string_view kMagic = "assay control";
constexpr std::size_t kMaxReason = 900;

Sha256 proof(const Secret& secret, std::string_view side, std::string_view hello,
             std::string_view challenge) {
  return hmac_sha256(secret.text(), PayloadWriter().text(side).text(hello).text(challenge).bytes());
}

HandshakeResult refused(std::string reason) {
  return {HandshakeResult::Status::kRefused, refusal_bytes(reason), std::move(reason)};
}

HandshakeResult ended(std::string reason) {
  return {HandshakeResult::Status::kRefused, {}, std::move(reason)};
}

}  // namespace

std::string refusal_bytes(std::string_view reason, bool may_try_again) {
  return frame_bytes(
      FrameKind::kRefused,
      PayloadWriter().text(reason.substr(0, kMaxReason)).number(may_try_again ? 1 : 0, 1).bytes());
}

HandshakeResult ServerHandshake::receive(const Frame& frame) {
  if (frame.kind == FrameKind::kHello && hello_.empty()) return read_hello(frame.payload);
  if (frame.kind != FrameKind::kProof || hello_.empty()) {
    return refused("unexpected message while joining a job");
  }
  if (!equal_digests(proof(secret_, "client", hello_, view(nonce_)), frame.payload)) {
    return refused(
        fmt::format("wrong secret for job '{}': give all ranks the same ASSAY_JOB_SECRET or the "
                    "same run folder",
                    job_));
  }
  return {HandshakeResult::Status::kAuthenticated, {}, {}};
}

HandshakeResult ServerHandshake::read_hello(const std::string& payload) {
  PayloadReader reader(payload);
  if (reader.text(kMagic.size()) != kMagic) return refused("this is not assay's control protocol");
  const std::uint64_t version = reader.number(2);
  if (version != kProtocolVersion) {
    return refused(fmt::format(
        "rank 0 speaks version {} of assay's control protocol and this rank version {}: run the "
        "same release of assay on all ranks",
        kProtocolVersion, version));
  }
  Introduction peer;
  peer.job = reader.text(kMaxJob);
  const std::uint64_t rank = reader.number(4);
  const std::uint64_t ranks = reader.number(4);
  peer.host = reader.text(kMaxHost);
  peer.pid = static_cast<std::int64_t>(reader.number(8) & INT64_MAX);
  const std::uint64_t purpose = reader.number(1);
  const std::string nonce = reader.text(sizeof(Sha256));
  if (!reader.complete() || nonce.size() != sizeof(Sha256) || rank > INT32_MAX ||
      ranks > INT32_MAX || purpose > 1) {
    return refused("its introduction is invalid");
  }
  peer.rank = static_cast<int>(rank);
  peer.ranks = static_cast<int>(ranks);
  peer.purpose = static_cast<Purpose>(purpose);
  if (peer.job != job_) {
    return refused(fmt::format("this port belongs to job '{}', not to '{}': two jobs use port {}",
                               job_, peer.job, port_));
  }
  peer_ = std::move(peer);
  hello_ = payload;
  return {HandshakeResult::Status::kContinue, frame_bytes(FrameKind::kChallenge, view(nonce_)), {}};
}

std::string ServerHandshake::welcome_bytes(std::int64_t remaining_ms) const {
  const Sha256 mine = proof(secret_, "server", hello_, view(nonce_));
  return frame_bytes(
      FrameKind::kWelcome,
      PayloadWriter().text(view(mine)).number(static_cast<std::uint64_t>(remaining_ms), 8).bytes());
}

ClientHandshake::ClientHandshake(const Introduction& self, const Secret& secret, Sha256 nonce)
    : secret_(secret),
      hello_(PayloadWriter()
                 .text(kMagic)
                 .number(kProtocolVersion, 2)
                 .text(self.job)
                 .number(static_cast<std::uint64_t>(self.rank), 4)
                 .number(static_cast<std::uint64_t>(self.ranks), 4)
                 .text(std::string_view(self.host).substr(0, kMaxHost))
                 .number(static_cast<std::uint64_t>(self.pid), 8)
                 .number(static_cast<std::uint64_t>(self.purpose), 1)
                 .text(view(nonce))
                 .bytes()) {}

HandshakeResult ClientHandshake::receive(const Frame& frame) {
  if (frame.kind == FrameKind::kRefused) {
    PayloadReader reader(frame.payload);
    const std::string reason = reader.text(kMaxReason);
    const bool try_again = reader.number(1) != 0;
    if (!reader.complete()) return ended("for a reason that could not be decoded");
    if (!try_again) return ended(base::printable(reason));
    return {HandshakeResult::Status::kTryAgain, {}, base::printable(reason)};
  }
  if (frame.kind == FrameKind::kChallenge && challenge_.empty() &&
      frame.payload.size() == sizeof(Sha256)) {
    challenge_ = frame.payload;
    const Sha256 mine = proof(secret_, "client", hello_, challenge_);
    return {HandshakeResult::Status::kContinue, frame_bytes(FrameKind::kProof, view(mine)), {}};
  }
  if (frame.kind == FrameKind::kWelcome && !challenge_.empty()) {
    PayloadReader reader(frame.payload);
    const std::string theirs = reader.text(sizeof(Sha256));
    const std::uint64_t remaining = reader.number(8);
    if (reader.complete() && equal_digests(proof(secret_, "server", hello_, challenge_), theirs)) {
      remaining_ms_ = static_cast<std::int64_t>(
          std::min<std::uint64_t>(remaining, static_cast<std::uint64_t>(kLongestWait_ms)));
      return {HandshakeResult::Status::kAuthenticated, {}, {}};
    }
    return ended("what listens there does not know the job's secret");
  }
  return ended("what listens there is not rank 0 of an assay job");
}

}  // namespace assay::control
