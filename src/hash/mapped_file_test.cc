#include "hash/mapped_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>

#include "base/testing/temp_dir.h"
#include "base/unique_fd.h"
#include "hash/testing/oracle.h"

namespace assay::hash {
namespace {

constexpr std::size_t kSize = 64 * 1024;

// Volatile, so that each call really reads.
int byte_at(const MappedFile& file, std::size_t i) {
  return static_cast<int>(*static_cast<const volatile std::byte*>(&file.bytes()[i]));
}

class MappedFileTest : public ::testing::Test {
 protected:
  MappedFileTest() {
    testing::write_file(path_, testing::noise(kSize));
    fd_.reset(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  }

  base::testing::TempDir directory_;
  std::filesystem::path path_ = directory_.path() / "file";
  base::UniqueFd fd_;
};

TEST_F(MappedFileTest, ReadsZerosAndReportsWhereTheFileWasCut) {
  const auto file = MappedFile::map(fd_.get(), kSize);
  ASSERT_TRUE(file);
  const int first = byte_at(*file, 0);
  EXPECT_FALSE(file->damaged());
  ASSERT_EQ(::ftruncate(fd_.get(), 4096), 0);
  EXPECT_EQ(byte_at(*file, 0), first);
  EXPECT_FALSE(file->damaged());
  EXPECT_EQ(byte_at(*file, kSize - 1), 0);
  EXPECT_TRUE(file->damaged());
  EXPECT_EQ(byte_at(*file, 0), first);
}

TEST_F(MappedFileTest, WorksInAThreadThatBlocksTheSignal) {
  const auto file = MappedFile::map(fd_.get(), kSize);
  ASSERT_TRUE(file);
  ASSERT_EQ(::ftruncate(fd_.get(), 0), 0);
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &all, &before), 0);
  {
    const SigbusUnblocked unblocked;
    EXPECT_EQ(byte_at(*file, 0), 0);
  }
  sigset_t after;
  ::pthread_sigmask(SIG_SETMASK, &before, &after);
  EXPECT_EQ(sigismember(&after, SIGBUS), 1);
  EXPECT_TRUE(file->damaged());
}

TEST_F(MappedFileTest, RefusesWhenItsHandlerIsNotInPlace) {
  ASSERT_TRUE(MappedFile::map(fd_.get(), kSize));
  struct sigaction other {};
  other.sa_handler = SIG_DFL;
  struct sigaction ours {};
  ASSERT_EQ(::sigaction(SIGBUS, &other, &ours), 0);
  EXPECT_FALSE(MappedFile::map(fd_.get(), kSize));
  ASSERT_EQ(::sigaction(SIGBUS, &ours, nullptr), 0);
  EXPECT_TRUE(MappedFile::map(fd_.get(), kSize));
}

TEST_F(MappedFileTest, RefusesWhenTooManyAreOpen) {
  std::vector<MappedFile> open;
  while (auto file = MappedFile::map(fd_.get(), kSize)) {
    open.push_back(std::move(*file));
    ASSERT_LE(open.size(), 1000U);
  }
  EXPECT_GE(open.size(), 16U);
  open.clear();
  EXPECT_TRUE(MappedFile::map(fd_.get(), kSize));
}

using MappedFileDeathTest = MappedFileTest;

// Faults outside a MappedFile still end the program.
TEST_F(MappedFileDeathTest, LeavesOtherFaultsAlone) {
  EXPECT_DEATH(
      {
        const auto file = MappedFile::map(fd_.get(), kSize);
        void* other = ::mmap(nullptr, kSize, PROT_READ, MAP_SHARED, fd_.get(), 0);
        if (::ftruncate(fd_.get(), 0) != 0) std::exit(0);
        const int value = *static_cast<const volatile char*>(other);
        std::exit(value);
      },
      "");
}

}  // namespace
}  // namespace assay::hash
