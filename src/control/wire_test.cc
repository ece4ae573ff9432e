// The parser with arbitrary bytes: it returns what was written, or refuses, and never reads past
// the end (the sanitized variant would detect that).
#include "control/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace assay::control {
namespace {

// Biased so that a fuzzed length or kind is often almost right.
rc::Gen<std::string> bytes() {
  return rc::gen::oneOf(
      rc::gen::container<std::string>(rc::gen::arbitrary<char>()),
      rc::gen::container<std::string>(rc::gen::elementOf(std::string("\0\1\2\3\20\27", 6))));
}

Message drawn_message() {
  Message message;
  message.kind = *rc::gen::element(FrameKind::kComplete, FrameKind::kHeartbeat, FrameKind::kAlive,
                                   FrameKind::kPut, FrameKind::kGet, FrameKind::kBarrier,
                                   FrameKind::kAnswer, FrameKind::kFailure, FrameKind::kGoodbye);
  message.id = *rc::gen::arbitrary<std::uint64_t>();
  message.number = *rc::gen::arbitrary<std::int64_t>();
  message.key = *rc::gen::resize(100, bytes());
  message.value = *bytes();
  return message;
}

RC_GTEST_PROP(Wire, MessagesSurviveAnyCutting, ()) {
  std::vector<Message> sent;
  std::string stream;
  for (int i = *rc::gen::inRange(0, 10); i > 0; --i) {
    sent.push_back(drawn_message());
    stream += encode(sent.back());
  }
  FrameReader reader(kMaxPayload);
  std::vector<Message> received;
  while (!stream.empty()) {
    const auto piece =
        *rc::gen::inRange<std::size_t>(1, std::min<std::size_t>(stream.size(), 64) + 1);
    reader.add(std::string_view(stream).substr(0, piece));
    stream.erase(0, piece);
    while (true) {
      auto frame = reader.next();
      RC_ASSERT(frame.has_value());
      if (!*frame) break;
      const auto message = decode(**frame);
      RC_ASSERT(message.has_value());
      received.push_back(*message);
    }
  }
  RC_ASSERT(received == sent);
}

RC_GTEST_PROP(Wire, AnyBytesAreFramesOrRefused, ()) {
  FrameReader reader(kMaxStrangerPayload);
  reader.add(*bytes());
  for (int i = 0; i < 100; ++i) {
    const auto frame = reader.next();
    if (!frame || !*frame) return;
    RC_ASSERT((*frame)->payload.size() <= kMaxStrangerPayload);
    (void)decode(**frame);
  }
}

RC_GTEST_PROP(Wire, AnyPayloadIsAMessageOrRefused, ()) {
  const Frame frame{*rc::gen::element(FrameKind::kHello, FrameKind::kPut, FrameKind::kGoodbye),
                    *bytes()};
  if (const auto message = decode(frame)) {
    RC_ASSERT(encode(*message) == frame_bytes(frame.kind, frame.payload));
  }
}

RC_GTEST_PROP(Wire, ACutMessageIsNoMessage, ()) {
  const std::string whole = encode(drawn_message());
  const std::string payload = whole.substr(8);
  const auto cut = *rc::gen::inRange<std::size_t>(0, payload.size());
  RC_ASSERT(!decode({FrameKind::kPut, payload.substr(0, cut)}));
  RC_ASSERT(!decode({FrameKind::kPut, payload + "x"}));
}

RC_GTEST_PROP(Wire, ErrorsSurvive, ()) {
  const auto text = [] { return *rc::gen::container<std::string>(rc::gen::arbitrary<char>()); };
  base::Error error{*rc::gen::element(base::ExitCode::kNo, base::ExitCode::kUnfit,
                                      base::ExitCode::kUsage, base::ExitCode::kInconclusive),
                    text(), text(), text()};
  const base::Error again = decode_error(encode_error(error));
  RC_ASSERT(again.code == error.code);
  RC_ASSERT(again.line() == error.line());
  (void)decode_error(*bytes());
}

TEST(Wire, LimitsHold) {
  FrameReader reader(10);
  reader.add(frame_bytes(FrameKind::kHello, std::string(10, 'x')));
  ASSERT_TRUE(reader.next().value());
  reader.add(frame_bytes(FrameKind::kHello, std::string(11, 'x')));
  EXPECT_THAT(reader.next().error().what, ::testing::HasSubstr("11 bytes is longer than the 10"));
  EXPECT_FALSE(reader.next());  // the reader stays failed
  // A length that is too large is refused before its bytes have arrived.
  FrameReader early(10);
  early.add(std::string("\xff\xff\xff\x7f\x01\0\0\0", 8));
  EXPECT_FALSE(early.next());
  for (const char* garbage :
       {"SSH-2.0-OpenSSH_9.2p1", "GET / HTTP/1.1\r\n", "\x16\x03\x01\x02\x01\x01\x01\x01"}) {
    FrameReader other(kMaxStrangerPayload);
    other.add(garbage);
    EXPECT_FALSE(other.next()) << garbage;
  }
  EXPECT_TRUE(decode_error("").what.find("could not be decoded") != std::string::npos);
  // The longest error fits into a message.
  const std::string longest(100'000, 'x');
  const Message failure{.kind = FrameKind::kFailure,
                        .value = encode_error({base::ExitCode::kNo, longest, longest, longest})};
  EXPECT_TRUE(decode({FrameKind::kFailure, encode(failure).substr(8)}));
}

}  // namespace
}  // namespace assay::control
