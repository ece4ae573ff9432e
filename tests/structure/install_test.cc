// scripts/install: all or nothing, and removed without a trace.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <regex>
#include <set>

#include "base/testing/temp_dir.h"
#include "base/text.h"
#include "structure/source_tree.h"

namespace assay::structure {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;

// A checkout with the script and programs that print their arguments.
class Install : public ::testing::Test {
 protected:
  Install() {
    fs::create_directories(tree() / "scripts");
    fs::copy(kRepository / "scripts/install", tree() / "scripts/install");
    write(tree() / "docs/plan.md", "# assay plan\n");
    for (const char* name : {"assay", "assay-train", "libassay-shim.so", "libassay-gpu.so"}) {
      write(tree() / "build" / name, "#!/bin/sh\necho $*\n");
      fs::permissions(tree() / "build" / name, fs::perms::owner_all);
    }
  }
  [[nodiscard]] fs::path tree() const { return directory_.path() / "tree"; }
  [[nodiscard]] fs::path prefix() const { return directory_.path() / "usr"; }
  int install(const std::string& arguments) const {
    const std::string command = base::shell_quoted((tree() / "scripts/install").string()) + " " +
                                arguments + " >/dev/null 2>&1";
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  [[nodiscard]] std::set<std::string> installed() const {
    std::set<std::string> found;
    if (!fs::exists(prefix())) return found;
    for (const auto& entry : fs::recursive_directory_iterator(prefix())) {
      found.insert(fs::relative(entry.path(), prefix()));
    }
    return found;
  }
  base::testing::TempDir directory_;
};

TEST_F(Install, IsRemovedWithTheFoldersThatItMade) {
  write(prefix() / "share/man/man1/other.1", "");
  const std::set<std::string> before = installed();
  ASSERT_EQ(install(prefix()), 0);
  EXPECT_TRUE(fs::exists(prefix() / "lib/assay/assay-train"));
  EXPECT_TRUE(fs::exists(prefix() / "share/man/man1/assay.1"));
  EXPECT_TRUE(fs::exists(prefix() / "share/doc/assay/plan.md"));
  ASSERT_EQ(install(prefix()), 0);  // again, over the first
  ASSERT_EQ(install("--remove " + prefix().string()), 0);
  EXPECT_EQ(installed(), before);
}

TEST_F(Install, LinksInInstalledPagesLeadToInstalledFiles) {
  fs::copy(kRepository / "docs", tree() / "docs",
           fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  write(tree() / "docs/page.md",
        "[src/x.cc](../src/x.cc), [`y`](../src/y.cc#part) and [z](plan.md#top)\n");
  ASSERT_EQ(install(prefix()), 0);
  const fs::path pages = prefix() / "share/doc/assay";
  EXPECT_EQ(content(pages / "page.md"), "src/x.cc, `y` (src/y.cc) and [z](plan.md#top)\n");
  const std::regex link(R"(\]\(([^)#\s]+))");
  int links = 0;
  for (const auto& page : fs::directory_iterator(pages)) {
    if (page.path().extension() != ".md") continue;
    const std::string text = content(page.path());
    for (std::sregex_iterator at(text.begin(), text.end(), link), end; at != end; ++at) {
      const std::string target = (*at)[1];
      if (target.find("://") != std::string::npos) continue;
      EXPECT_TRUE(fs::exists(pages / target)) << page.path() << ": " << target;
      ++links;
    }
  }
  EXPECT_GT(links, 100);
  ASSERT_EQ(install("--remove " + prefix().string()), 0);
  EXPECT_THAT(installed(), IsEmpty());
}

TEST_F(Install, NothingIsInstalledUnlessAllIsBuilt) {
  fs::remove(tree() / "build/assay-train");
  EXPECT_EQ(install(prefix()), 3);
  EXPECT_THAT(installed(), IsEmpty());
}

// LD_PRELOAD could not name the shim.
TEST_F(Install, PrefixesWithBlanksOrColonsAreRefused) {
  for (const char* bad : {"'/tmp/a b'", "/tmp/a:b", "relative", "''"}) {
    EXPECT_EQ(install(bad), 64) << bad;
  }
}

}  // namespace
}  // namespace assay::structure
