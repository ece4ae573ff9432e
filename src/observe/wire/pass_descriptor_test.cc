#include "observe/wire/pass_descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace assay::wire {
namespace {

class PassDescriptorTest : public ::testing::Test {
 protected:
  void connect(int type) { ASSERT_EQ(::socketpair(AF_UNIX, type, 0, ends_.data()), 0); }
  void TearDown() override {
    for (const int end : ends_) ::close(end);
  }

  std::array<int, 2> ends_{-1, -1};
};

TEST_F(PassDescriptorTest, TheSameFileArrivesAndIsNotPassedOnByExec) {
  connect(SOCK_STREAM);
  const int file = ::open("/dev/full", O_WRONLY);
  ASSERT_TRUE(send_descriptor(ends_[0], file));
  const int received = receive_descriptor(ends_[1]);
  ASSERT_GE(received, 0);
  EXPECT_NE(received, file);
  struct stat sent {
  }, got{};
  ASSERT_EQ(::fstat(file, &sent), 0);
  ASSERT_EQ(::fstat(received, &got), 0);
  EXPECT_EQ(got.st_rdev, sent.st_rdev);
  EXPECT_EQ(::fcntl(received, F_GETFD), FD_CLOEXEC);
  ::close(file);
  ::close(received);
}

TEST_F(PassDescriptorTest, MessagesComeWithADescriptorOrWithout) {
  connect(SOCK_SEQPACKET);
  const std::array<int, 3> message{1, 2, 3};
  ASSERT_TRUE(send_message(ends_[0], message.data(), sizeof message, -1));
  ASSERT_TRUE(send_message(ends_[0], message.data(), sizeof message, ends_[0]));
  std::array<int, 3> arrived{};
  int descriptor = 99;
  ASSERT_TRUE(receive_message(ends_[1], arrived.data(), sizeof arrived, descriptor));
  EXPECT_EQ(arrived, message);
  EXPECT_EQ(descriptor, -1);
  ASSERT_TRUE(receive_message(ends_[1], arrived.data(), sizeof arrived, descriptor));
  EXPECT_GE(descriptor, 0);
  ::close(descriptor);
}

TEST_F(PassDescriptorTest, WhenTheOtherEndIsGoneNothingIsSentOrReceived) {
  connect(SOCK_STREAM);
  ::close(std::exchange(ends_[0], -1));
  EXPECT_EQ(receive_descriptor(ends_[1]), -1);
  EXPECT_FALSE(send_descriptor(ends_[1], ends_[1])) << "and no SIGPIPE";
}

TEST_F(PassDescriptorTest, AMessageOfAnotherSizeIsNone) {
  connect(SOCK_SEQPACKET);
  const char byte = 7;
  ASSERT_TRUE(send_message(ends_[0], &byte, sizeof byte, -1));
  int word = 0;
  int descriptor = -1;
  EXPECT_FALSE(receive_message(ends_[1], &word, sizeof word, descriptor));
}

}  // namespace
}  // namespace assay::wire
