#include "lineage/pack/tar.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>

#include "base/process/capture.h"
#include "base/process/environment.h"
#include "base/testing/temp_dir.h"
#include "base/unique_fd.h"

namespace assay::lineage {
namespace {

using ::testing::HasSubstr;

// A file in memory, read from its beginning.
base::UniqueFd memory(const std::string& text = {}) {
  base::UniqueFd fd(::memfd_create("tar", MFD_CLOEXEC));
  EXPECT_EQ(::write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ::lseek(fd.get(), 0, SEEK_SET);
  return fd;
}

std::string contents(int fd) {
  std::string text(static_cast<std::size_t>(::lseek(fd, 0, SEEK_END)), '\0');
  EXPECT_EQ(::pread(fd, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  return text;
}

std::string tar_of(const std::vector<std::pair<std::string, std::string>>& members) {
  const base::UniqueFd fd = memory();
  TarWriter writer(fd.get(), "test");
  for (const auto& [name, text] : members) EXPECT_TRUE(writer.add(name, text));
  EXPECT_TRUE(writer.finish());
  return contents(fd.get());
}

// "a=1 b=22", or the error.
std::string listing(const std::string& tar) {
  const base::UniqueFd fd = memory(tar);
  TarReader reader(fd.get(), "test");
  std::string list;
  while (true) {
    const auto member = reader.next();
    if (!member) return member.error().line();
    if (!*member) return list;
    const auto text = reader.read_all(1 << 20);
    if (!text) return text.error().line();
    list += (*member)->name + "=" + *text + " ";
  }
}

RC_GTEST_PROP(TarProperty, WhatIsWrittenIsRead, ()) {
  const auto texts = *rc::gen::container<std::vector<std::string>>(rc::gen::string<std::string>());
  std::vector<std::pair<std::string, std::string>> members;
  std::string expected;
  for (const std::string& text : texts) {
    members.push_back({"m" + std::to_string(members.size()), text});
    expected += members.back().first + "=" + text + " ";
  }
  RC_ASSERT(listing(tar_of(members)) == expected);
}

TEST(Tar, IsReadByTar) {
  const base::testing::TempDir directory;
  const std::string tar = tar_of({{"manifest.json", "{}"}, {"contents/ab", std::string(700, 'x')}});
  std::ofstream(directory.path() / "t.tar") << tar;
  const auto listed = base::run_captured({.arguments = {"tar", "-xvf", "t.tar"},
                                          .environment = base::Environment::from_current(),
                                          .directory = directory.path()});
  ASSERT_TRUE(listed);
  EXPECT_EQ(listed->exit_code, 0) << listed->errors;
  EXPECT_EQ(listed->output, "manifest.json\ncontents/ab\n");
  EXPECT_EQ(std::filesystem::file_size(directory.path() / "contents/ab"), 700U);
}

// As long as it has to be, without its bytes.
TEST(Tar, SizesAbove8GiBAreKept) {
  constexpr std::int64_t kSize = (std::int64_t{1} << 33) + 5;
  const base::UniqueFd fd = memory();
  ASSERT_TRUE(TarWriter(fd.get(), "test").begin("large", kSize));
  const base::UniqueFd again = memory(contents(fd.get()));
  const auto member = TarReader(again.get(), "test").next();
  ASSERT_TRUE(member && *member);
  EXPECT_EQ((*member)->size, kSize);
}

TEST(Tar, EveryByteOfAHeaderCounts) {
  const std::string tar = tar_of({{"a", "1"}});
  for (std::size_t i = 0; i < 500; ++i) {
    std::string damaged = tar;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    EXPECT_THAT(listing(damaged), HasSubstr("test: ")) << i;
  }
}

TEST(Tar, WhatEndsEarlyIsAnError) {
  const std::string tar = tar_of({{"a", "1"}, {"b", "2"}});
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{100}, std::size_t{512}, std::size_t{600}, std::size_t{1500}}) {
    EXPECT_THAT(listing(tar.substr(0, size)), HasSubstr("is truncated")) << size;
  }
}

}  // namespace
}  // namespace assay::lineage
