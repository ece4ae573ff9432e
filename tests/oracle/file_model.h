// A model of a directory's names and files that replays the calls strace saw and derives what an
// exact observer must report: which files the command read and which it changed. Written from the
// specification of system calls, independent of src/.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "oracle/strace_log.h"

namespace assay::oracle {

// A folder at one moment. Paths are relative to it.
struct Snapshot {
  enum class Kind { kFile, kFolder, kLink, kOther };
  struct Entry {
    Kind kind = Kind::kOther;
    std::uint64_t inode = 0;
    std::int64_t size = 0;
    std::int64_t mtime_ns = 0;
    std::string target;  // of a link
    // An inode is used again as soon as it is free; this distinguishes one use from the next.
    std::int64_t born_ns = 0;
  };
  std::map<std::string, Entry> entries;
};
Snapshot take_snapshot(const std::filesystem::path& root);
// Paths at which a file is not what it was: other content, another file, or none. What any
// observer's outputs must be, whatever happened in between.
std::set<std::string> changes(const Snapshot& before, const Snapshot& after);

// What a command did to the files of a folder; paths are relative to it.
struct Lineage {
  std::set<std::string> inputs;
  std::map<std::string, std::string>
      outputs;  // path -> created, modified, renamed, linked, deleted
};

class FileModel {
 public:
  // `root` is absolute and without symbolic links; `before` is what it held when the command began.
  FileModel(const std::filesystem::path& root, const Snapshot& before);

  // `directory`: where the first thread starts.
  void replay(const std::vector<Call>& calls, const std::string& directory);
  // `after` shows what no system call does: whether a mapped file was written to.
  [[nodiscard]] Lineage result(const Snapshot& after) const;

  // Calls that the model could not follow. A test that has any proves nothing.
  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }
  [[nodiscard]] int processes() const { return processes_; }

 private:
  struct Node {
    Snapshot::Kind kind = Snapshot::Kind::kFile;
    std::string original;  // its first name before the command; empty: made by it
    bool existed = false;
    bool touched = false;   // a call named it
    bool writable = false;  // was opened for writing
    bool changed = false;
    std::uint64_t inode = 0;
    std::int64_t mtime_ns = 0;
    std::string target;
  };
  using NodePtr = std::shared_ptr<Node>;

  void apply(const Call& call);
  void open(const Call& call, std::size_t flags);
  void transfer(const Argument& descriptor, bool write);
  void rename(const Call& call, const std::string& from, const std::string& to, bool exchange);
  void make(const std::string& path, Snapshot::Kind kind, const std::string& target = {});
  void read(const NodePtr& node, const std::string& path);
  void link(const Call& call, NodePtr node, const std::string& to);
  void forget(const std::string& path);
  void fork(const Call& call);

  // Absolute, with all symbolic links followed, or all but the last.
  std::string resolve(const std::string& directory, const std::string& path, bool follow) const;
  std::string at(const Call& call, std::size_t directory, std::size_t path, bool follow = false);
  std::string here(const Call& call, std::size_t path, bool follow = false);
  std::shared_ptr<std::string>& cwd(int thread);
  [[nodiscard]] bool inside(const std::string& path) const;
  NodePtr find(const std::string& path) const;

  std::string root_;
  std::map<std::string, NodePtr> before_;
  std::map<std::string, NodePtr> now_;
  std::map<std::string, NodePtr> unnamed_;  // O_TMPFILE, by the path the kernel makes up
  std::map<std::pair<int, std::string>, std::string>
      descriptors_;  // of those, by thread and number
  std::map<int, std::shared_ptr<std::string>> cwd_;
  std::map<int, int> parents_;
  std::string first_directory_;
  std::set<std::string> inputs_;
  std::vector<std::string> problems_;
  int processes_ = 1;
};

}  // namespace assay::oracle
