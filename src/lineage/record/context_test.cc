#include "lineage/record/context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include "lineage/testing/checkout.h"

namespace assay::lineage {
namespace {

using testing::Checkout;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(Context, GatheredBesideTheCaller) {
  const base::testing::TempDir folder;
  const Checkout checkout(folder.path() / "p");
  checkout.init();
  checkout.write("a", "1\n");
  std::vector<std::string> environment = checkout.environment();
  environment.emplace_back("THE_TOKEN=abc");
  ContextTask task({.directory = checkout.path(), .environment = environment});
  const GatheredContext gathered = task.take();
  ASSERT_TRUE(gathered.context.git);
  EXPECT_TRUE(gathered.context.git->dirty);
  EXPECT_THAT(gathered.context.environment, Contains(Pair("THE_TOKEN", "[redacted]")));
  EXPECT_EQ(gathered.context.user, ::getpwuid(::geteuid())->pw_name);
  EXPECT_NE(gathered.context.host, "");
  EXPECT_THAT(gathered.problems, IsEmpty());
}

TEST(Context, GitProblemIsReported) {
  const base::testing::TempDir folder;
  const Checkout checkout(folder.path());
  checkout.write(".git", "nonsense");
  EXPECT_THAT(
      gather_context({.directory = folder.path(), .environment = checkout.environment()}).problems,
      Contains(HasSubstr("git: ")));
}

// A machine whose memory and boot can be changed behind the cache's back.
class MachineFacts : public ::testing::Test {
 protected:
  void SetUp() override { boot("one"); }
  void write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_.path() / "root" / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void boot(const std::string& id) { write("proc/sys/kernel/random/boot_id", id + "\n"); }
  base::Json facts() {
    return machine_facts(folder_.path(), {(folder_.path() / "root").string(), ""});
  }
  std::filesystem::path cache() { return folder_.path() / "machine.json"; }
  // Writes a value into the cache that no machine has.
  void mark_cache() {
    base::Json document = base::Json::parse(testing::content_of(cache()));
    document["machine"]["drivers"]["nvidia"] = "from the cache";
    std::ofstream(cache()) << document.dump();
  }
  bool from_cache() { return facts()["drivers"]["nvidia"] == "from the cache"; }

  base::testing::TempDir folder_;
};

TEST_F(MachineFacts, RememberedUntilTheNextBoot) {
  write("proc/meminfo", "MemTotal: 1024 kB\n");
  EXPECT_EQ(facts()["memory_bytes"], 1024 * 1024);
  mark_cache();
  EXPECT_TRUE(from_cache());
  write("proc/meminfo", "MemTotal: 2048 kB\n");  // not from the driver
  EXPECT_EQ(facts()["memory_bytes"], 2048 * 1024);
  EXPECT_TRUE(from_cache());
  boot("two");
  EXPECT_FALSE(from_cache());
}

TEST_F(MachineFacts, AnotherDriverOrOtherDevices) {
  facts();
  mark_cache();
  write("dev/nvidia0", "");
  EXPECT_FALSE(from_cache());
  mark_cache();
  EXPECT_TRUE(from_cache());
  write("proc/driver/nvidia/version", "580");
  EXPECT_FALSE(from_cache());
}

TEST_F(MachineFacts, BrokenCacheIsNoError) {
  for (const char* text : {"", "{", "[]", "{\"key\":1}", "null", "\xff"}) {
    std::ofstream(cache()) << text;
    EXPECT_TRUE(facts().contains("memory_bytes")) << text;
  }
  std::filesystem::remove(cache());
  std::filesystem::create_directory(cache());
  EXPECT_TRUE(facts().contains("memory_bytes"));
  EXPECT_TRUE(machine_facts("/nonexistent", {"/nonexistent", ""}).is_object());
}

TEST(Usage, FromTheKernelsUnits) {
  struct rusage usage {};
  usage.ru_utime = {2, 500'000};
  usage.ru_stime = {0, 250'000};
  usage.ru_maxrss = 3;
  usage.ru_inblock = 4;
  usage.ru_oublock = 5;
  const store::Usage found = usage_of(usage);
  EXPECT_DOUBLE_EQ(found.user_s, 2.5);
  EXPECT_DOUBLE_EQ(found.system_s, 0.25);
  EXPECT_EQ(found.max_rss_bytes, 3072);
  EXPECT_EQ(found.read_bytes, 2048);
  EXPECT_EQ(found.written_bytes, 2560);
}

}  // namespace
}  // namespace assay::lineage
