#include "lineage/testing/tracker_scenario.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include "base/unique_fd.h"
#include "hash/blake3.h"
#include "lineage/track/stamp.h"

namespace assay::lineage::testing {

using collect::Change;
using wire::RecordOp;
namespace flag = wire::flag;

std::string RecordedResults::relative(const std::string& path) const {
  return path.starts_with(root + "/") ? path.substr(root.size() + 1) : path;
}

void RecordedResults::input(store::Input input, const FilterRule& rule) {
  EXPECT_TRUE(rule.keep);
  sorted = sorted && last_input_ < input.path;
  last_input_ = input.path;
  inputs[relative(input.path)] = std::move(input);
}

void RecordedResults::output(store::Output output, const FilterRule& rule) {
  EXPECT_TRUE(rule.keep);
  sorted = sorted && last_output_ < output.path;
  last_output_ = output.path;
  output.from = relative(output.from);
  outputs[relative(output.path)] = std::move(output);
}

void RecordedResults::left_out(LeftOut file, const FilterRule& rule) {
  EXPECT_FALSE(rule.keep);
  reasons[relative(file.path)] = rule.name;
}

TrackerScenario::TrackerScenario(const Tracker::Options& options,
                                 std::vector<Filter::UserRule> user_rules)
    : root(scratch.path() / "project"),
      filter({.root = root, .home = scratch.path() / "home", .user_rules = std::move(user_rules)}),
      tracker(std::make_unique<Tracker>(options, filter)) {
  std::filesystem::create_directory(root);
  recorded_.root = root;
}

std::string TrackerScenario::path(const std::string& name) const {
  return name.starts_with('/') ? name : root + "/" + name;
}

wire::Stamp TrackerScenario::stamp(const std::string& name) const {
  struct stat status {};
  EXPECT_EQ(::stat(path(name).c_str(), &status), 0) << name;
  return to_wire(stamp_of(status));
}

void TrackerScenario::put(const std::string& name, const std::string& content) {
  std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
  write_file(path(name), content);
}

void TrackerScenario::folder(const std::string& name) {
  std::filesystem::create_directories(path(name));
}

void TrackerScenario::alias(const std::string& name, const std::string& target) {
  std::filesystem::create_symlink(target, path(name));
}

void TrackerScenario::begin() {
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
}

collect::Event TrackerScenario::event(RecordOp op, const std::string& path,
                                      const std::string& other) {
  text_ = path;
  other_ = other;
  collect::Event event;
  event.op = op;
  event.thread = event.process = 100;
  event.parent = 1;
  event.path = text_;
  event.other = other_;
  return event;
}

void TrackerScenario::report(RecordOp op, const std::string& name, const wire::Stamp* stamp,
                             std::uint16_t flags, const std::string& other) {
  auto reported = event(op, path(name), other.empty() ? other : path(other));
  reported.flags = flags;
  if (stamp != nullptr) {
    reported.stamp = *stamp;
  } else {
    reported.flags |= flag::kNoStamp;
  }
  tracker->on_event(reported);
}

void TrackerScenario::read(const std::string& name) {
  const auto now = stamp(name);
  report(RecordOp::kRead, name, &now);
}

void TrackerScenario::create(const std::string& name, const std::string& content) {
  if (!mode.stamped_creation) report(RecordOp::kCreate, name, nullptr);
  const base::UniqueFd fd(::open(path(name).c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600));
  ASSERT_TRUE(fd.valid()) << name;
  if (mode.stamped_creation) {
    const auto now = stamp(name);
    report(RecordOp::kCreate, name, &now);
  }
  EXPECT_EQ(::write(fd.get(), content.data(), content.size()),
            static_cast<ssize_t>(content.size()));
}

void TrackerScenario::append(const std::string& name, const std::string& content) {
  const auto before = stamp(name);
  tracker->before_change(path(name), before, Change::kContent);
  if (mode.events_before_change) report(RecordOp::kWrite, name, &before);
  std::ofstream(path(name), std::ios::app) << content;
  if (!mode.events_before_change) report(RecordOp::kWrite, name, &before);
}

void TrackerScenario::overwrite(const std::string& name, const std::string& content) {
  const auto before = stamp(name);
  tracker->before_change(path(name), before, Change::kTruncate);
  if (mode.events_before_change) report(RecordOp::kTruncate, name, &before);
  write_file(path(name), content);
  if (!mode.events_before_change) report(RecordOp::kTruncate, name, &before);
}

void TrackerScenario::update(const std::string& name, const std::string& content) {
  const auto before = stamp(name);
  tracker->before_change(path(name), before, Change::kContentReadable);
  if (mode.events_before_change) report(RecordOp::kRead, name, &before, flag::kWritable);
  std::fstream(path(name), std::ios::in | std::ios::out) << content;
  if (!mode.events_before_change) report(RecordOp::kRead, name, &before, flag::kWritable);
}

void TrackerScenario::open_only(const std::string& name, bool readable) {
  const auto before = stamp(name);
  tracker->before_change(path(name), before,
                         readable ? Change::kContentReadable : Change::kContent);
  report(readable ? RecordOp::kRead : RecordOp::kWrite, name, &before,
         readable ? flag::kWritable : 0);
}

void TrackerScenario::remove(const std::string& name) {
  const auto before = stamp(name);
  tracker->before_change(path(name), before, Change::kName);
  if (mode.events_before_change) report(RecordOp::kDelete, name, &before);
  EXPECT_EQ(::unlink(path(name).c_str()), 0) << name;
  if (!mode.events_before_change) report(RecordOp::kDelete, name, &before);
}

void TrackerScenario::rename(const std::string& from, const std::string& to, bool exchange) {
  const auto before = stamp(from);
  for (const std::string& name : {from, to}) {
    struct stat status {};
    if (::stat(path(name).c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
      tracker->before_change(path(name), to_wire(stamp_of(status)), Change::kName);
    }
  }
  const auto flags = static_cast<std::uint16_t>(exchange ? flag::kExchange : 0);
  if (mode.events_before_change) report(RecordOp::kRename, from, &before, flags, to);
  EXPECT_EQ(::renameat2(AT_FDCWD, path(from).c_str(), AT_FDCWD, path(to).c_str(),
                        exchange ? RENAME_EXCHANGE : 0),
            0)
      << from << " " << to;
  if (!mode.events_before_change) report(RecordOp::kRename, from, &before, flags, to);
}

void TrackerScenario::link(const std::string& from, const std::string& to) {
  const auto before = stamp(from);
  if (mode.events_before_change) report(RecordOp::kLink, from, &before, 0, to);
  EXPECT_EQ(::link(path(from).c_str(), path(to).c_str()), 0) << from << " " << to;
  if (!mode.events_before_change) report(RecordOp::kLink, from, &before, 0, to);
}

void TrackerScenario::unnamed_then_link(const std::string& name, const std::string& content) {
  if (!mode.stamped_creation) report(RecordOp::kCreate, ".", nullptr, flag::kUnnamed);
  const base::UniqueFd fd(::open(root.c_str(), O_WRONLY | O_TMPFILE, 0600));
  ASSERT_TRUE(fd.valid());
  const std::string link = "/proc/self/fd/" + std::to_string(fd.get());
  const auto made = stamp(link);
  if (mode.stamped_creation) report(RecordOp::kCreate, ".", &made, flag::kUnnamed);
  EXPECT_EQ(::write(fd.get(), content.data(), content.size()),
            static_cast<ssize_t>(content.size()));
  const auto now = stamp(link);
  const std::string seen = path("#" + std::to_string(now.inode) + " (deleted)");
  if (mode.events_before_change) report(RecordOp::kLink, seen, &now, 0, name);
  EXPECT_EQ(::linkat(AT_FDCWD, link.c_str(), AT_FDCWD, path(name).c_str(), AT_SYMLINK_FOLLOW), 0);
  if (!mode.events_before_change) report(RecordOp::kLink, seen, &now, 0, name);
}

void TrackerScenario::write_outside(const std::string& name, const std::string& content) {
  write_file(path(name), content);
}

RecordedResults& TrackerScenario::finish() {
  if (!std::exchange(finished_, true)) tracker->finish(recorded_);
  EXPECT_TRUE(recorded_.sorted);
  return recorded_;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream content;
  content << in.rdbuf();
  return content.str();
}

void write_file(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

}  // namespace assay::lineage::testing
