#include "hash/small_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <random>
#include <vector>

#include "base/testing/temp_dir.h"
#include "base/unique_fd.h"
#include "hash/blake3.h"
#include "hash/testing/oracle.h"

namespace assay::hash {
namespace {

class SmallFilesTest : public ::testing::TestWithParam<const Kernel*> {
 protected:
  base::UniqueFd make(std::span<const std::byte> content) {
    const auto path = directory_.path() / "file";
    testing::write_file(path, content);
    return base::UniqueFd(::open(path.c_str(), O_RDWR));
  }
  static FileStamp stamp(const base::UniqueFd& file) {
    struct stat status {};
    EXPECT_EQ(::fstat(file.get(), &status), 0);
    return stamp_of(status);
  }

  base::testing::TempDir directory_;
};

// Batches of every number of files, of all sizes around whole blocks and chunks.
TEST_P(SmallFilesTest, AgreeWithHashingEachAlone) {
  std::vector<std::size_t> sizes = {1, 63, 64, 65, 1023, 8191, 8192};
  for (std::size_t chunks = 1; chunks < 8; ++chunks) {
    for (std::size_t more : {0U, 1U, 64U, 500U}) sizes.push_back(chunks * 1024 + more);
  }
  std::mt19937 random(7);
  SmallFiles files(*GetParam());
  for (std::size_t batch = 1; batch <= SmallFiles::kMost; ++batch) {
    std::vector<Digest> expected;
    for (std::size_t i = 0; i < batch; ++i) {
      const auto content = testing::noise(sizes[random() % sizes.size()], random());
      const auto file = make(content);
      ASSERT_TRUE(files.takes(stamp(file).size));
      const auto added = files.add(file.get(), "file", stamp(file));
      ASSERT_TRUE(added);
      EXPECT_FALSE(added->changed);
      EXPECT_EQ(added->size.count(), content.size());
      expected.push_back(blake3(content));
    }
    EXPECT_EQ(files.takes(1), batch < SmallFiles::kMost);
    ASSERT_EQ(files.digests(), expected) << batch;
  }
  EXPECT_FALSE(files.takes(0));
  EXPECT_FALSE(files.takes(8193));
}

// What was there is hashed, and said to have changed.
TEST_P(SmallFilesTest, ANewerStateIsSeen) {
  const auto content = testing::noise(3000, 1);
  const auto file = make(content);
  FileStamp before = stamp(file);
  SmallFiles files(*GetParam());
  ASSERT_EQ(::ftruncate(file.get(), 2500), 0);
  auto added = files.add(file.get(), "file", before);
  ASSERT_TRUE(added);
  EXPECT_TRUE(added->changed);
  EXPECT_EQ(added->size.count(), 2500);
  before = stamp(file);
  before.mtime_ns -= 1;
  added = files.add(file.get(), "file", before);
  ASSERT_TRUE(added);
  EXPECT_TRUE(added->changed);
  const Digest expected = blake3(std::span(content).first(2500));
  EXPECT_EQ(files.digests(), (std::vector<Digest>{expected, expected}));
  EXPECT_FALSE(files.add(-1, "file", before));
  EXPECT_TRUE(files.digests().empty());
}

INSTANTIATE_TEST_SUITE_P(Kernels, SmallFilesTest,
                         ::testing::ValuesIn(usable_kernels().begin(), usable_kernels().end()),
                         [](const auto& of) {
                           std::string name = of.param->name;
                           std::erase(name, '.');
                           return name;
                         });

}  // namespace
}  // namespace assay::hash
