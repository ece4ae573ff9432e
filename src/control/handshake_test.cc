// Both sides against each other, and each against a dishonest peer.
#include "control/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace assay::control {
namespace {

using ::testing::HasSubstr;
using Status = HandshakeResult::Status;

const std::string kJob = "job 1";
const Secret kSecret("0123456789abcdef");
const Introduction kSelf{kJob, 3, 8, "node", 42};

ServerHandshake server() {
  return {kJob, kSecret, 29500, random_nonce()};
}

// The one frame in the bytes.
Frame frame_of(const std::string& bytes) {
  FrameReader reader(kMaxStrangerPayload);
  reader.add(bytes);
  auto frame = reader.next();
  EXPECT_TRUE(frame && *frame);
  return frame && *frame ? **std::move(frame) : Frame{};
}

// The server's view of a peer that introduces itself as `self` and has `secret`.
HandshakeResult handshake_with(const Introduction& self, const Secret& secret) {
  ServerHandshake rank_0 = server();
  ClientHandshake client(self, secret, random_nonce());
  HandshakeResult result = rank_0.receive(frame_of(client.hello_bytes()));
  if (result.status != Status::kContinue) return result;
  return rank_0.receive(frame_of(client.receive(frame_of(result.bytes)).bytes));
}

TEST(Handshake, BothSidesProveThemselves) {
  ServerHandshake rank_0 = server();
  ClientHandshake client(kSelf, kSecret, random_nonce());
  EXPECT_FALSE(rank_0.introduced());
  const HandshakeResult challenge = rank_0.receive(frame_of(client.hello_bytes()));
  EXPECT_EQ(rank_0.peer(), kSelf);
  const HandshakeResult proof = client.receive(frame_of(challenge.bytes));
  EXPECT_EQ(rank_0.receive(frame_of(proof.bytes)).status, Status::kAuthenticated);
  EXPECT_EQ(client.receive(frame_of(rank_0.welcome_bytes(1234))).status, Status::kAuthenticated);
  EXPECT_EQ(client.remaining_ms(), 1234);
  // The secret was not sent in any form.
  for (const std::string& bytes : {client.hello_bytes(), challenge.bytes, proof.bytes}) {
    EXPECT_EQ(bytes.find(kSecret.text()), std::string::npos);
  }
}

TEST(Handshake, WhoIsRefusedAndWhy) {
  EXPECT_EQ(handshake_with(kSelf, kSecret).status, Status::kAuthenticated);
  EXPECT_THAT(handshake_with(kSelf, Secret("another secret...")).reason,
              HasSubstr("wrong secret for job 'job 1'"));
  EXPECT_THAT(
      handshake_with({"job 2", 3, 8, "node", 42}, kSecret).reason,
      HasSubstr("this port belongs to job 'job 1', not to 'job 2': two jobs use port 29500"));
  // Another release: the version is read before anything that may have changed.
  std::string hello = PayloadWriter().text("assay control").number(7, 2).text("?").bytes();
  EXPECT_THAT(server().receive({FrameKind::kHello, hello}).reason,
              HasSubstr("version 1 of assay's control protocol and this rank version 7"));
  EXPECT_THAT(server().receive({FrameKind::kHello, "GET /"}).reason,
              HasSubstr("not assay's control protocol"));
  EXPECT_EQ(server().receive({FrameKind::kProof, std::string(32, 'x')}).status, Status::kRefused);
  // The refusal says the same to the other side.
  ClientHandshake client(kSelf, kSecret, random_nonce());
  const HandshakeResult refused = client.receive(frame_of(refusal_bytes("go\naway")));
  EXPECT_EQ(refused.status, Status::kRefused);
  EXPECT_EQ(refused.reason, "go\\x0aaway");
  EXPECT_EQ(client.receive(frame_of(refusal_bytes("slow", true))).status, Status::kTryAgain);
}

TEST(Handshake, AnImpostorCannotPlayRankZero) {
  // It has recorded an earlier handshake and replays it.
  ServerHandshake rank_0 = server();
  ClientHandshake first(kSelf, kSecret, random_nonce());
  const HandshakeResult challenge = rank_0.receive(frame_of(first.hello_bytes()));
  const HandshakeResult proof = first.receive(frame_of(challenge.bytes));
  const std::string welcome = rank_0.welcome_bytes(1);
  ClientHandshake second(kSelf, kSecret, random_nonce());
  EXPECT_EQ(second.receive(frame_of(challenge.bytes)).status, Status::kContinue);
  EXPECT_THAT(second.receive(frame_of(welcome)).reason,
              HasSubstr("does not know the job's secret"));
  // Nor can a client's proof be given back to it as rank 0's.
  ClientHandshake third(kSelf, kSecret, random_nonce());
  const std::string own = frame_of(third.receive(frame_of(challenge.bytes)).bytes).payload;
  EXPECT_EQ(
      third.receive({FrameKind::kWelcome, PayloadWriter().text(own).number(0, 8).bytes()}).status,
      Status::kRefused);
  // And a welcome without a challenge means nothing.
  ClientHandshake fourth(kSelf, kSecret, random_nonce());
  EXPECT_EQ(fourth.receive(frame_of(welcome)).status, Status::kRefused);
  // An old proof is worth nothing to a rank 0 with another nonce.
  ServerHandshake later = server();
  later.receive(frame_of(first.hello_bytes()));
  EXPECT_EQ(later.receive(frame_of(proof.bytes)).status, Status::kRefused);
}

RC_GTEST_PROP(Handshake, ChangedBytesAreNeverProven, ()) {
  ServerHandshake rank_0 = server();
  ClientHandshake client(kSelf, kSecret, random_nonce());
  Frame hello = frame_of(client.hello_bytes());
  const auto flip = [](std::string& payload) {
    const auto at = *rc::gen::inRange<std::size_t>(0, payload.size());
    payload[at] = static_cast<char>(payload[at] ^ (1 << *rc::gen::inRange(0, 8)));
  };
  const bool in_hello = *rc::gen::arbitrary<bool>();
  if (in_hello) flip(hello.payload);
  const HandshakeResult challenge = rank_0.receive(hello);
  if (challenge.status == Status::kRefused) return;
  Frame proof = frame_of(client.receive(frame_of(challenge.bytes)).bytes);
  if (!in_hello) flip(proof.payload);
  RC_ASSERT(rank_0.receive(proof).status == Status::kRefused);
}

RC_GTEST_PROP(Handshake, AnyFramesAreRefusedOrAnswered, ()) {
  ServerHandshake rank_0 = server();
  ClientHandshake client(kSelf, kSecret, random_nonce());
  for (int i = 0; i < 4; ++i) {
    const Frame frame{*rc::gen::element(FrameKind::kHello, FrameKind::kChallenge, FrameKind::kProof,
                                        FrameKind::kWelcome, FrameKind::kRefused, FrameKind::kPut),
                      *rc::gen::container<std::string>(rc::gen::arbitrary<char>())};
    RC_ASSERT(rank_0.receive(frame).status != Status::kAuthenticated);
    RC_ASSERT(client.receive(frame).status != Status::kAuthenticated);
  }
}

}  // namespace
}  // namespace assay::control
