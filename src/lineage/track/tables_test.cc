// The tracker's tables, each against a standard container.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>

#include "lineage/track/file_table.h"
#include "lineage/track/path_resolver.h"
#include "lineage/track/path_table.h"

namespace assay::lineage {
namespace {

RC_GTEST_PROP(PathTable, OrdersLikeTheTexts, ()) {
  const auto part =
      rc::gen::elementOf(std::vector<std::string>{"a", "b", "a.b", "a-b", "\xC3\xA9"});
  const auto all = *rc::gen::container<std::vector<std::vector<std::string>>>(
      rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(part)));
  PathTable table;
  std::set<std::string> texts;
  std::vector<PathId> ids;
  for (const auto& parts : all) {
    std::string folder;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) folder += "/" + parts[i];
    const PathId id = table.find_or_add(table.folder(folder), parts.back());
    RC_ASSERT(table.text(id) == folder + "/" + parts.back());
    if (texts.insert(table.text(id)).second) ids.push_back(id);
  }
  std::ranges::sort(ids, [&](PathId a, PathId b) { return table.less(a, b); });
  std::vector<std::string> sorted;
  for (const PathId id : ids) sorted.push_back(table.text(id));
  RC_ASSERT(sorted == std::vector<std::string>(texts.begin(), texts.end()));
}

TEST(PathTable, HoldsManyPathsAndTheirFolders) {
  PathTable table;
  for (int i = 0; i < 20'000; ++i) {
    const FolderId folder = table.folder("/f" + std::to_string(i % 97));
    EXPECT_EQ(table.find(folder, "n" + std::to_string(i)), 0);
    EXPECT_EQ(table.find_or_add(folder, "n" + std::to_string(i)), i + 1);
  }
  std::size_t listed = 0;
  for (FolderId folder = 1; folder < table.folder_end(); ++folder) {
    for (PathId id = table.first_in(folder); id != 0; id = table[id].next_in_folder) {
      EXPECT_EQ(table[id].folder, folder);
      ++listed;
    }
  }
  EXPECT_EQ(listed, 20'000);
  EXPECT_EQ(table.find(table.folder("/f1"), "n98"), 99);
  EXPECT_EQ(table.text(99), "/f1/n98");
}

RC_GTEST_PROP(FileTable, FindsTheLatestFileWithAnIdentity, ()) {
  const auto steps = *rc::gen::container<std::vector<std::tuple<int, int, int>>>(
      rc::gen::tuple(rc::gen::inRange(0, 2), rc::gen::inRange(1, 4), rc::gen::inRange(1, 30)));
  FileTable table;
  std::map<std::pair<int, int>, FileId> expected;
  std::map<FileId, std::pair<int, int>> identity;
  for (const auto& [kind, device, inode] : steps) {
    const wire::Stamp stamp{static_cast<std::uint64_t>(device), static_cast<std::uint64_t>(inode)};
    const std::pair key{device, inode};
    FileId id = 0;
    if (kind == 0 || identity.empty()) {
      id = table.add(&stamp, 0);
    } else {
      id = identity.begin()->first;
      const auto old = identity[id];
      if (expected[old] == id) expected.erase(old);
      table.identify(id, stamp);
    }
    expected[key] = id;
    identity[id] = key;
  }
  for (const auto& [key, id] : expected) {
    RC_ASSERT(table.find(static_cast<std::uint64_t>(key.first),
                         static_cast<std::uint64_t>(key.second)) == id);
  }
}

TEST(PathResolver, TidiesFoldersThatAreNoMore) {
  EXPECT_EQ(normalized("/no/./such//folder"), "/no/such/folder");
  EXPECT_EQ(normalized("/no/such/../folder/"), "/no/folder");
  EXPECT_EQ(normalized("/../.."), "");
}

TEST(PathResolver, NamesNoFileWhereThereIsNone) {
  PathTable table;
  PathResolver places(table);
  for (const char* path : {"", "a", "/", "/a/", "/a/.", "/a/.."}) {
    EXPECT_EQ(places.resolve(path).folder, 0) << path;
  }
  EXPECT_EQ(table.folder_path(places.resolve("/a").folder), "");
  EXPECT_EQ(places.resolve("/a").name, "a");
  EXPECT_EQ(table.folder_path(places.resolve("//usr/./bin/../x").folder), "/usr");
}

}  // namespace
}  // namespace assay::lineage
