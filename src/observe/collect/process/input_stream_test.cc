#include "observe/collect/process/input_stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace assay::collect {
namespace {

class InputStreamTest : public ::testing::Test {
 protected:
  // Whether a read of up to `size` bytes counts, of a stream that `text` was written to.
  static bool counts(int reader, int writer, const std::string& text, std::size_t size) {
    EXPECT_EQ(::write(writer, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    const InputStream stream = InputStream::watch(reader);
    EXPECT_EQ(stream.state(), InputStream::State::kNotRead);
    std::array<char, 100> buffer;
    if (size > 0) {
      EXPECT_GE(::read(reader, buffer.data(), size), 0);
    }
    return stream.state() == InputStream::State::kRead;
  }
};

TEST_F(InputStreamTest, APipeCountsIfItIsRead) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  EXPECT_TRUE(counts(pipe[0], pipe[1], "0123456789", 4)) << "the rest is left in the pipe";
  EXPECT_FALSE(counts(pipe[0], pipe[1], "more", 0));
  EXPECT_TRUE(counts(pipe[0], pipe[1], "", 100));
  const InputStream before = InputStream::watch(pipe[0]);
  ::close(pipe[1]);
  const InputStream after = InputStream::watch(pipe[0]);
  char byte = 0;
  EXPECT_EQ(::read(pipe[0], &byte, 1), 0);
  for (const InputStream* stream : {&before, &after}) {
    EXPECT_EQ(stream->state(), InputStream::State::kNotRead) << "there was nothing to read";
  }
  ::close(pipe[0]);
}

TEST_F(InputStreamTest, WhatWasSplicedWasRead) {
  std::array<int, 2> pipe{};
  std::array<int, 2> other{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  ASSERT_EQ(::pipe(other.data()), 0);
  ASSERT_EQ(::write(pipe[1], "text", 4), 4);
  const InputStream stream = InputStream::watch(pipe[0]);
  EXPECT_EQ(::splice(pipe[0], nullptr, other[1], nullptr, 4, 0), 4);
  EXPECT_EQ(stream.state(), InputStream::State::kRead);
  for (const int end : {pipe[0], pipe[1], other[0], other[1]}) ::close(end);
}

TEST_F(InputStreamTest, AFileOrDeviceDoesNotCount) {
  const int null = ::open("/dev/zero", O_RDWR);
  EXPECT_FALSE(counts(null, null, "text", 4));
  ::close(null);
  EXPECT_EQ(InputStream::watch(-1).state(), InputStream::State::kNotRead);
}

// As when the user has as many instances as the kernel allows.
TEST_F(InputStreamTest, WithoutAnInotifyInstanceItIsNotKnown) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const int next = ::dup(pipe[0]);
  ::close(next);
  const rlimit none{static_cast<rlim_t>(next), limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const InputStream open = InputStream::watch(pipe[0]);
  ::close(pipe[1]);
  const InputStream ended = InputStream::watch(pipe[0]);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(open.state(), InputStream::State::kUnknown);
  EXPECT_EQ(ended.state(), InputStream::State::kNotRead) << "there was nothing to read";
  ::close(pipe[0]);
}

}  // namespace
}  // namespace assay::collect
