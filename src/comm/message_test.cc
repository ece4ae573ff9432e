// Bytes that no rank would send: decoded as messages, and sent to a mesh.
#include "comm/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "comm/mesh.h"

namespace assay::comm {
namespace {

RC_GTEST_PROP(Messages, ComeBackAsTheyWere, ()) {
  Message message;
  message.kind = static_cast<MessageKind>(*rc::gen::inRange(1, 5));
  message.one_to_one = *rc::gen::arbitrary<bool>();
  message.group = *rc::gen::arbitrary<std::uint64_t>();
  message.number = *rc::gen::arbitrary<std::uint64_t>();
  message.call.kind = static_cast<CommKind>(*rc::gen::inRange(0, 7));
  message.call.count = *rc::gen::inRange<std::int64_t>(0, 1'000'000'000'000);
  message.call.type = static_cast<ElementType>(*rc::gen::inRange(0, 5));
  message.call.root = *rc::gen::inRange(0, 1000);
  message.bytes = *rc::gen::inRange<std::uint64_t>(0, kReasonBytes);
  const auto read = decoded(encoded(message));
  RC_ASSERT(read.has_value());
  RC_ASSERT(read->kind == message.kind);
  RC_ASSERT(read->one_to_one == message.one_to_one);
  RC_ASSERT(read->group == message.group);
  RC_ASSERT(read->number == message.number);
  RC_ASSERT(read->call == message.call);
  RC_ASSERT(read->bytes == message.bytes);
}

RC_GTEST_PROP(Messages, AnyBytesAreReadOrRefused, ()) {
  Header header = encoded({});
  const int changes = *rc::gen::inRange(0, 6);
  for (int i = 0; i < changes; ++i) {
    header[*rc::gen::inRange<std::size_t>(0, kHeaderBytes)] =
        static_cast<std::byte>(*rc::gen::inRange(0, 256));
  }
  if (const auto read = decoded(header)) RC_ASSERT(encoded(*read) == header);
}

TEST(Messages, ReasonsComeBack) {
  const base::Error error = base::unfit_error("disk", "is full", "make room");
  const base::Error read = decoded_reason(encoded_reason(error));
  EXPECT_EQ(read.line(), error.line());
  EXPECT_EQ(read.code, error.code);
  EXPECT_LE(encoded_reason(base::failed_error(std::string(9999, 'x'), std::string(9999, 'y'),
                                              std::string(9999, 'z')))
                .size(),
            kReasonBytes);
  EXPECT_FALSE(decoded_reason("").line().empty());
  EXPECT_FALSE(decoded_reason("\1only this").line().empty());
}

// Rank 0 of two, whose peer is the test.
class Peer {
 public:
  Peer() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    std::vector<base::UniqueFd> sockets(2);
    sockets[1].reset(ends[0]);
    own_.reset(ends[1]);
    mesh = *Mesh::create(0, std::move(sockets), std::chrono::seconds(60));
    mesh->add_group(0, 0, {0, 1});
  }
  ~Peer() { mesh->leave(0); }

  void send(const void* bytes, std::size_t size) const {
    [[maybe_unused]] const ssize_t sent = ::send(own_.get(), bytes, size, MSG_NOSIGNAL);
  }
  void close() { own_.reset(); }
  // A call that needs the peer.
  std::string outcome() {
    const auto issued = mesh->issue(0, kGather, transfers());
    if (!issued) return issued.error().line();
    const auto done = mesh->wait(*issued);
    return done ? "ok" : done.error().line();
  }

  static constexpr Call kGather = {CommKind::kAllGather, 4};
  std::shared_ptr<Mesh> mesh;
  std::array<std::byte, 4> mine{};
  std::array<std::byte, 8> all{};

 private:
  Transfers transfers() { return *transfers_of(kGather, 0, 2, mine.data(), all.data(), {}); }
  base::UniqueFd own_;
};

TEST(MeshPeers, AProperMessageIsTaken) {
  Peer peer;
  const Header header = encoded({MessageKind::kData, false, 0, 1, Peer::kGather, 4});
  peer.send(header.data(), header.size());
  peer.send("abcd", 4);
  EXPECT_EQ(peer.outcome(), "ok");
  EXPECT_EQ(std::memcmp(peer.all.data() + 4, "abcd", 4), 0);
}

TEST(MeshPeers, GarbageEndsTheConnection) {
  Peer peer;
  const std::string garbage(1000, 'g');
  peer.send(garbage.data(), garbage.size());
  EXPECT_THAT(peer.outcome(),
              ::testing::StartsWith("rank 1: sent an invalid message; connection closed"));
}

TEST(MeshPeers, DataThatWasNotAskedForEndsTheConnection) {
  Peer peer;
  const Header header =
      encoded({MessageKind::kData, true, 0, 1, {CommKind::kSend, 1 << 20}, 1 << 20});
  peer.send(header.data(), header.size());
  EXPECT_THAT(peer.outcome(), ::testing::StartsWith("rank 1: sent an unexpected message"));
}

// Whatever a peer sends, calls end, and nothing is written where it does not belong (sanitizers).
RC_GTEST_PROP(MeshPeers, AnyMessagesAreSurvived, (unsigned seed)) {
  std::mt19937 random(seed);
  Peer peer;
  const auto messages = random() % 20;
  for (std::size_t i = 0; i < messages; ++i) {
    Message message;
    message.kind = static_cast<MessageKind>(1 + random() % 4);
    message.one_to_one = random() % 4 == 0;
    message.group = random() % 5 == 0 ? random() % 3 : 0;
    message.number = random() % 3;
    message.call = Peer::kGather;
    if (random() % 5 == 0) message.call.count = static_cast<std::int64_t>(random() % 9);
    if (random() % 5 == 0) message.call.kind = static_cast<CommKind>(random() % 7);
    message.bytes = random() % 3 == 0 ? random() % 40'000 : 4;
    if (message.kind == MessageKind::kAbort) message.bytes %= kReasonBytes;
    Header header = encoded(message);
    if (random() % 20 == 0) header[random() % kHeaderBytes] ^= std::byte{0x81};
    peer.send(header.data(), header.size());
    const std::string payload(static_cast<std::size_t>(message.payload()), 'p');
    peer.send(payload.data(), payload.size());
    if (random() % 8 == 0) peer.send("x", 1);
  }
  peer.close();
  RC_ASSERT(!peer.outcome().empty());
}

}  // namespace
}  // namespace assay::comm
