#include "hash/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "base/testing/temp_dir.h"
#include "base/unique_fd.h"
#include "hash/blake3.h"
#include "hash/testing/oracle.h"

namespace assay::hash {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class HashFile : public ::testing::TestWithParam<ReadMethod> {
 protected:
  fs::path make(std::size_t size, const std::string& name = "file") {
    data_ = testing::noise(size, size + 1);
    testing::write_file(directory_.path() / name, data_);
    return directory_.path() / name;
  }
  [[nodiscard]] HashOptions with(unsigned threads) const {
    return {.threads = threads, .reading = GetParam()};
  }

  base::testing::TempDir directory_;
  std::vector<std::byte> data_;  // of the last file made
};

TEST_P(HashFile, AgreesWithB3sum) {
  for (const std::size_t size : {0U, 1U, 1024U, 65'537U, 512U << 10, (1U << 20) - 1, 1U << 20,
                                 (1U << 20) + 1, (5U << 20) + 12'345, 9U << 20}) {
    const auto path = make(size);
    const std::string expected = testing::b3sum(path);
    for (const unsigned threads : {1U, 2U, 3U, 7U, 0U}) {
      const auto hashed = hash_file(path, with(threads));
      ASSERT_TRUE(hashed) << hashed.error().line();
      EXPECT_EQ(hashed->digest.hex(), expected) << size;
      EXPECT_EQ(hashed->size.count(), size);
      EXPECT_FALSE(hashed->changed);
    }
  }
}

TEST_P(HashFile, ReadsHolesAsZeros) {
  const auto path = make(100);
  fs::resize_file(path, (7U << 20) + 5);
  EXPECT_EQ(hash_file(path, with(2))->digest.hex(), testing::b3sum(path));
}

TEST_P(HashFile, LeavesThePositionOfADescriptorAlone) {
  const auto path = make(2U << 20);
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::lseek(fd.get(), 77, SEEK_SET), 77);
  EXPECT_EQ(hash_file(fd.get(), "it", with(2))->digest, blake3(data_));
  EXPECT_EQ(::lseek(fd.get(), 0, SEEK_CUR), 77);
}

TEST_P(HashFile, GivesTheStampThatStatGives) {
  const auto path = make(10);
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  const auto stamp = hash_file(path, with(1))->stamp;
  EXPECT_EQ(stamp.inode, status.st_ino);
  EXPECT_EQ(stamp.device, status.st_dev);
  EXPECT_EQ(stamp.size, 10);
  EXPECT_EQ(stamp.mtime_ns, status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec);
  EXPECT_EQ(stamp.ctime_ns, status.st_ctim.tv_sec * 1'000'000'000 + status.st_ctim.tv_nsec);
}

TEST_P(HashFile, ReadsFilesWithoutAStatedSize) {
  const auto hashed = hash_file("/proc/self/cmdline", with(2));
  ASSERT_TRUE(hashed) << hashed.error().line();
  EXPECT_GT(hashed->size.count(), 0);
  std::ifstream stream("/proc/self/cmdline", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_EQ(hashed->digest, blake3(std::as_bytes(std::span(text))));
}

TEST_P(HashFile, ReportsProgressAndStops) {
  const auto path = make((6U << 20) + 3);
  std::atomic<std::int64_t> done = 0;
  HashOptions options = with(3);
  options.progress = [&](std::int64_t bytes) { done += bytes; };
  ASSERT_TRUE(hash_file(path, options));
  EXPECT_EQ(done, (6 << 20) + 3);

  std::stop_source stop;
  options.stop = stop.get_token();
  options.progress = [&](std::int64_t) { stop.request_stop(); };
  const auto stopped = hash_file(path, options);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().line(), path.string() + ": stopped");
}

// The file is truncated while it is hashed: by the progress callback, after the first segment, so
// that the rest is gone.
TEST_P(HashFile, HashesWhatIsLeftOfAFileThatShrinks) {
  for (const std::size_t left :
       {std::size_t{0}, std::size_t{1} << 20, (std::size_t{3} << 20) + 77, std::size_t{4} << 20}) {
    for (const unsigned threads : {1U, 3U}) {
      const auto path = make(8U << 20);
      HashOptions options = with(threads);
      options.progress = [&](std::int64_t) { fs::resize_file(path, left); };
      const auto hashed = hash_file(path, options);
      ASSERT_TRUE(hashed) << hashed.error().line();
      EXPECT_TRUE(hashed->changed);
      // Segments that were read before the cut may count.
      const auto size = static_cast<std::size_t>(hashed->size.count());
      ASSERT_LE(size, data_.size());
      EXPECT_GE(size, left);
      if (size > left) continue;
      EXPECT_EQ(hashed->digest, blake3(std::span(data_).first(size)));
    }
  }
}

TEST_P(HashFile, HashesTheSizeItFirstSawOfAFileThatGrows) {
  const auto path = make(4U << 20);
  HashOptions options = with(2);
  options.progress = [&](std::int64_t) {
    std::ofstream(path, std::ios::app | std::ios::binary) << "more";
  };
  const auto hashed = hash_file(path, options);
  ASSERT_TRUE(hashed);
  EXPECT_TRUE(hashed->changed);
  EXPECT_EQ(hashed->size.count(), 4 << 20);
  EXPECT_EQ(hashed->digest, blake3(data_));
}

// The file is unlinked, but its descriptor is still open.
TEST_P(HashFile, KeepsHashingAFileThatIsRemoved) {
  const auto path = make(4U << 20);
  HashOptions options = with(2);
  options.progress = [&](std::int64_t) { ::unlink(path.c_str()); };
  const auto hashed = hash_file(path, options);
  ASSERT_TRUE(hashed);
  EXPECT_EQ(hashed->digest, blake3(data_));
  EXPECT_TRUE(hashed->changed);  // unlinking changes the link count, and so ctime
}

// Timing is unpredictable here; the test is that nothing crashes and no false error is reported.
TEST_P(HashFile, SurvivesAFileThatIsCutAndGrownAllTheTime) {
  const auto path = make(4U << 20);
  std::jthread writer([&](const std::stop_token& stop) {
    for (off_t size = 0; !stop.stop_requested(); size = (size + 777'777) % (4 << 20)) {
      if (::truncate(path.c_str(), size) != 0 || ::truncate(path.c_str(), 4 << 20) != 0) return;
    }
  });
  int changed = 0;
  for (int i = 0; i < 100; ++i) {
    const auto hashed = hash_file(path, with(1 + static_cast<unsigned>(i % 3)));
    ASSERT_TRUE(hashed) << hashed.error().line();
    changed += hashed->changed ? 1 : 0;
  }
  EXPECT_GT(changed, 0);
}

TEST_P(HashFile, ErrorsNameTheReason) {
  const auto expect = [&](const fs::path& path, const std::string& text) {
    const auto hashed = hash_file(path, with(2));
    ASSERT_FALSE(hashed);
    EXPECT_THAT(hashed.error().line(), HasSubstr(text));
    EXPECT_THAT(hashed.error().where, path.string());
  };
  expect(directory_.path(), "is a directory");
  expect(directory_.path() / "none", "no such file");
  expect("/dev/null", "is a device");
  const auto fifo = directory_.path() / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  expect(fifo, "is a pipe");
  if (::geteuid() != 0) {
    const auto secret = make(10, "secret");
    fs::permissions(secret, fs::perms::none);
    expect(secret, "Permission denied");
  }
  EXPECT_EQ(hash_file(-1, "nothing", with(1)).error().where, "nothing");
  const base::UniqueFd write_only(::open(make(10).c_str(), O_WRONLY | O_CLOEXEC));
  EXPECT_THAT(hash_file(write_only.get(), "it", with(1)).error().line(), HasSubstr("cannot read"));
}

INSTANTIATE_TEST_SUITE_P(ReadMethod, HashFile,
                         ::testing::Values(ReadMethod::kMapped, ReadMethod::kCopied),
                         [](const auto& test) {
                           return test.param == ReadMethod::kMapped ? "Mapped" : "Copied";
                         });

}  // namespace
}  // namespace assay::hash
