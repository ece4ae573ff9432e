#include "oracle/file_model.h"

#include <fmt/format.h>

namespace assay::oracle {

using Kind = Snapshot::Kind;

FileModel::FileModel(const std::filesystem::path& root, const Snapshot& before)
    : root_(root.string()) {
  std::map<std::uint64_t, NodePtr> by_inode;
  for (const auto& [path, entry] : before.entries) {
    NodePtr& node = by_inode[entry.inode];
    if (!node) {
      node = std::make_shared<Node>();
      node->kind = entry.kind;
      node->original = root_ + "/" + path;
      node->existed = true;
      node->inode = entry.inode;
      node->mtime_ns = entry.mtime_ns;
      node->target = entry.target;
    }
    before_[root_ + "/" + path] = node;
  }
  now_ = before_;
}

bool FileModel::inside(const std::string& path) const {
  return path.starts_with(root_ + "/");
}

FileModel::NodePtr FileModel::find(const std::string& path) const {
  const auto found = now_.find(path);
  return found != now_.end() ? found->second : nullptr;
}

std::string FileModel::resolve(const std::string& directory, const std::string& path,
                               bool follow) const {
  std::string rest = path;
  std::string at = rest.starts_with('/') ? "" : directory;
  for (int links = 0; !rest.empty();) {
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    const std::string part = rest.substr(0, slash);
    rest.erase(0, std::min(slash + 1, rest.size()));
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      at.erase(std::min(at.rfind('/'), at.size()));
      continue;
    }
    const NodePtr node = find(at + "/" + part);
    const bool is_last = rest.find_first_not_of('/') == std::string::npos;
    if (node && node->kind == Kind::kLink && (!is_last || follow) && ++links < 40) {
      rest = node->target + (rest.empty() ? "" : "/" + rest);
      if (rest.starts_with('/')) at.clear();
    } else {
      at += "/" + part;
    }
  }
  return at;
}

// The working directory is one object for all threads that share it (CLONE_FS).
std::shared_ptr<std::string>& FileModel::cwd(int thread) {
  std::shared_ptr<std::string>& known = cwd_[thread];
  if (!known) {
    // Not forked yet according to the log: children's calls often come before their parent's fork.
    const auto parent = parents_.find(thread);
    known = std::make_shared<std::string>(parent != parents_.end() ? *cwd(parent->second)
                                                                   : first_directory_);
  }
  return known;
}

std::string FileModel::at(const Call& call, std::size_t directory, std::size_t path, bool follow) {
  const Argument& base = call.argument(directory);
  if (base.text == "AT_FDCWD" && base.path) *cwd(call.thread) = *base.path;
  const std::string& name = call.argument(path).quoted.value_or("");
  return resolve(base.path.value_or(*cwd(call.thread)), name, follow);
}

std::string FileModel::here(const Call& call, std::size_t path, bool follow) {
  return resolve(*cwd(call.thread), call.argument(path).quoted.value_or(""), follow);
}

void FileModel::fork(const Call& call) {
  const int child = std::atoi(call.result.text.c_str());
  if (!call.has_flag(0, "CLONE_THREAD") && !call.has_flag(1, "CLONE_THREAD")) ++processes_;
  const bool shares = call.has_flag(0, "CLONE_FS") || call.has_flag(1, "CLONE_FS");
  if (shares) {
    cwd_[child] = cwd(call.thread);
  } else if (!cwd_.contains(child)) {
    cwd_[child] = std::make_shared<std::string>(*cwd(call.thread));
  }
}

void FileModel::replay(const std::vector<Call>& calls, const std::string& directory) {
  first_directory_ = directory;
  for (const Call& call : calls) {
    const bool forks =
        call.name.find("fork") != std::string::npos || call.name.starts_with("clone");
    if (forks && !call.failed()) parents_[std::atoi(call.result.text.c_str())] = call.thread;
  }
  for (const Call& call : calls) {
    if (!call.failed()) apply(call);
  }
}

void FileModel::apply(const Call& call) {
  const std::string& name = call.name;
  if (name == "open") return open(call, 1);
  if (name == "creat") return open(call, 99);
  if (name == "openat" || name == "openat2" || name == "open_by_handle_at") {
    if (name != "open_by_handle_at") at(call, 0, 1);
    return open(call, 2);
  }
  if (name == "execve" || name == "execveat") {
    std::string path = name == "execve" ? here(call, 0, true) : at(call, 0, 1, true);
    if (name == "execveat" && call.argument(1).quoted.value_or("").empty()) {
      path = call.argument(0).path.value_or("");
    }
    if (const NodePtr node = find(path)) read(node, path);
    return;
  }
  if (name == "rename") return rename(call, here(call, 0), here(call, 1), false);
  if (name == "renameat" || name == "renameat2") {
    return rename(call, at(call, 0, 1), at(call, 2, 3), call.has_flag(4, "RENAME_EXCHANGE"));
  }
  if (name == "link") return link(call, find(here(call, 0)), here(call, 1));
  if (name == "linkat") {
    const std::string given = call.argument(1).quoted.value_or("");
    NodePtr node = find(at(call, 0, 1, call.has_flag(4, "AT_SYMLINK_FOLLOW")));
    if (given.empty()) node = unnamed_[call.argument(0).path.value_or("")];
    if (const std::string magic = "/proc/self/fd/"; given.starts_with(magic)) {
      const auto known = descriptors_.find({call.thread, given.substr(magic.size())});
      if (known != descriptors_.end()) node = unnamed_[known->second];
    }
    return link(call, node, at(call, 2, 3));
  }
  if (name == "unlink" || name == "rmdir") return forget(here(call, 0));
  if (name == "unlinkat") return forget(at(call, 0, 1));
  if (name == "symlink") return make(here(call, 1), Kind::kLink, *call.argument(0).quoted);
  if (name == "symlinkat") return make(at(call, 1, 2), Kind::kLink, *call.argument(0).quoted);
  if (name == "mkdir") return make(here(call, 0), Kind::kFolder);
  if (name == "mkdirat") return make(at(call, 0, 1), Kind::kFolder);
  if (name == "mknod" || name == "mknodat") {
    const std::size_t mode = name == "mknod" ? 1 : 2;
    return make(name == "mknod" ? here(call, 0) : at(call, 0, 1),
                call.has_flag(mode, "S_IFREG") ? Kind::kFile : Kind::kOther);
  }
  if (name == "truncate") {
    const NodePtr node = find(here(call, 0, true));
    if (node) node->touched = node->changed = true;
    return;
  }
  if (name == "chdir") {
    *cwd(call.thread) = here(call, 0, true);
    return;
  }
  if (name == "fchdir") {
    *cwd(call.thread) = call.argument(0).path.value_or("");
    return;
  }
  if (name == "unshare") {
    if (call.has_flag(0, "CLONE_FS")) {
      std::shared_ptr<std::string>& mine = cwd(call.thread);
      mine = std::make_shared<std::string>(*mine);
    }
    return;
  }
  if (name.find("fork") != std::string::npos || name.starts_with("clone")) return fork(call);
  if (name == "sendfile") {
    transfer(call.argument(1), false);
    return transfer(call.argument(0), true);
  }
  if (name == "copy_file_range" || name == "splice") {
    transfer(call.argument(0), false);
    return transfer(call.argument(2), true);
  }
  if (name == "ftruncate" || name == "fallocate" || name.find("write") != std::string::npos) {
    return transfer(call.argument(0), true);
  }
  if (name.find("read") != std::string::npos) return transfer(call.argument(0), false);
}

void FileModel::open(const Call& call, std::size_t flags) {
  const bool creat = call.name == "creat";
  const std::string path = call.result.path.value_or("");
  if (path.empty() && call.name != "open_by_handle_at")
    problems_.push_back(call.name + ": strace could not tell the path");
  if (!inside(path) || call.has_flag(flags, "O_PATH")) return;
  const bool both = call.has_flag(flags, "O_RDWR");
  const bool writable = creat || both || call.has_flag(flags, "O_WRONLY");
  if (call.has_flag(flags, "O_TMPFILE")) {
    unnamed_[path] = std::make_shared<Node>();
    descriptors_[{call.thread, call.result.text}] = path;
    return;
  }
  if (call.result.deleted) return;
  NodePtr node = find(path);
  if (!node) {
    if (!creat && !call.has_flag(flags, "O_CREAT")) {
      problems_.push_back(
          fmt::format("{} of '{}', of which the model knows nothing", call.name, path));
    }
    make(path, Kind::kFile);
    return;
  }
  if (node->kind != Kind::kFile) return;
  node->touched = true;
  const bool cuts = creat || call.has_flag(flags, "O_TRUNC");
  if (!cuts && (both || !writable)) read(node, path);
  node->writable = node->writable || writable;
  node->changed = node->changed || cuts;
}

// Reads and writes through a descriptor: inherited files are known by these.
void FileModel::transfer(const Argument& descriptor, bool write) {
  const std::string path = descriptor.path.value_or("");
  if (!inside(path) || descriptor.deleted) return;
  NodePtr node = find(path);
  if (!node) {
    if (!write) return;
    make(path, Kind::kFile);
    node = find(path);
  }
  node->touched = true;
  if (write) {
    node->changed = true;
  } else {
    read(node, path);
  }
}

// Only what the command did not make or change itself is an input, under the name it had before.
void FileModel::read(const NodePtr& node, const std::string& path) {
  node->touched = true;
  if (node->kind != Kind::kFile || !node->existed || node->changed) return;
  const auto before = before_.find(path);
  inputs_.insert(before != before_.end() && before->second == node ? path : node->original);
}

void FileModel::make(const std::string& path, Kind kind, const std::string& target) {
  if (!inside(path)) return;
  const auto node = std::make_shared<Node>();
  node->kind = kind;
  node->target = target;
  node->touched = true;
  now_[path] = node;
}

void FileModel::link(const Call& call, NodePtr node, const std::string& to) {
  if (!inside(to)) return;
  if (!node) {
    problems_.push_back(fmt::format("{} to '{}' of a file the model does not know", call.name, to));
    return;
  }
  node->touched = true;
  now_[to] = node;
}

void FileModel::forget(const std::string& path) {
  const auto found = now_.find(path);
  if (found == now_.end()) return;
  found->second->touched = true;
  now_.erase(found);
}

void FileModel::rename(const Call& call, const std::string& from, const std::string& to,
                       bool exchange) {
  if (from == to || (!inside(from) && !inside(to))) return;
  const NodePtr moved = find(from);
  const NodePtr replaced = find(to);
  if (!moved) {
    problems_.push_back(
        fmt::format("{} of '{}', of which the model knows nothing", call.name, from));
    return;
  }
  if (moved == replaced && !exchange) return;  // two names of one file: nothing happens
  moved->touched = true;
  if (replaced) replaced->touched = true;
  std::map<std::string, NodePtr> below;
  const auto carry = [&](const std::string& a, const std::string& b) {
    for (const auto& [path, node] : now_) {
      if (!path.starts_with(a + "/")) continue;
      below[b + path.substr(a.size())] = node;
      node->touched = true;  // it has another name now
    }
  };
  carry(from, to);
  if (exchange) carry(to, from);
  std::erase_if(now_, [&](const auto& entry) {
    return entry.first.starts_with(from + "/") || entry.first.starts_with(to + "/");
  });
  now_.erase(from);
  now_[to] = moved;
  if (exchange && replaced) now_[from] = replaced;
  now_.insert(below.begin(), below.end());
}

Lineage FileModel::result(const Snapshot& after) const {
  std::map<std::uint64_t, std::int64_t> mtimes;
  for (const auto& [path, entry] : after.entries) mtimes[entry.inode] = entry.mtime_ns;
  const auto changed = [&](const Node& node) {
    const auto found = mtimes.find(node.inode);
    return node.changed ||
           (node.writable && found != mtimes.end() && found->second != node.mtime_ns);
  };
  std::set<NodePtr> alive;
  std::map<NodePtr, bool> keeps_name;
  for (const auto& [path, node] : now_) {
    alive.insert(node);
    const auto before = before_.find(path);
    if (before != before_.end() && before->second == node) keeps_name[node] = true;
  }

  Lineage lineage;
  const auto relative = [&](const std::string& path) { return path.substr(root_.size() + 1); };
  for (const std::string& path : inputs_) lineage.inputs.insert(relative(path));
  for (const auto& [path, node] : now_) {
    if (node->kind != Kind::kFile || !node->touched || !inside(path)) continue;
    const auto before = before_.find(path);
    const bool stood = before != before_.end() && before->second->kind == Kind::kFile;
    if (!node->existed) {
      lineage.outputs[relative(path)] = stood ? "modified" : "created";
    } else if (stood && before->second == node) {
      if (changed(*node)) lineage.outputs[relative(path)] = "modified";
    } else {
      lineage.outputs[relative(path)] = keeps_name[node] ? "linked" : "renamed";
      lineage.inputs.insert(relative(node->original));
    }
  }
  for (const auto& [path, node] : before_) {
    if (node->kind != Kind::kFile || now_.contains(path)) continue;
    if (!node->touched || (alive.contains(node) && !keeps_name[node])) continue;
    lineage.outputs[relative(path)] = "deleted";
  }
  return lineage;
}

}  // namespace assay::oracle
