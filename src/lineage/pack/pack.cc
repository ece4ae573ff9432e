#include "lineage/pack/pack.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/file.h"
#include "base/path_map.h"
#include "hash/blake3.h"
#include "lineage/archive/archive_names.h"
#include "lineage/graph/upstream.h"
#include "lineage/pack/tar.h"
#include "lineage/pack/zstd.h"
#include "lineage/record/redirects.h"
#include "lineage/redact/diff.h"
#include "lineage/redact/secret_search.h"
#include "lineage/reproduce/choose_runs.h"
#include "store/run_dependencies.h"
#include "store/run_reader.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

base::Result<std::vector<store::RunRecord>> runs_of(store::Store& store,
                                                    const RunOrArtifact& what) {
  if (const auto* artifact = std::get_if<Artifact>(&what)) {
    ASSAY_TRY(ChosenRuns chosen, choose_runs(store, *artifact));
    return std::move(chosen.runs);
  }
  ASSAY_TRY(const store::RunRecord run, store::head_of(store, std::get<store::RunId>(what)));
  if (run.status == store::RunStatus::kRunning) {
    return base::fail(
        base::usage_error(fmt::format("run {}", run.id), "is still running", "wait until it ends"));
  }
  ASSAY_TRY(const std::vector<store::RunId> builds, build_runs_before(store, run));
  return upstream_of(store, {run.id}, {}, builds);
}

hash::Digest digest_of_text(std::string_view text) {
  return hash::blake3(std::as_bytes(std::span(text)));
}

// Whether this section of a diff, "diff --git a/x b/x …", is about the file. Names with unusual
// characters are quoted and escaped, so such a section may be about any file.
bool is_about(std::string_view section, const std::string& file) {
  const std::string_view line = section.substr(0, section.find('\n'));
  return line.ends_with(" b/" + file) || line.starts_with("diff --git a/" + file + " b/") ||
         line.find('"') != line.npos;
}

// The diff without its sections about these files.
std::string without_files(std::string_view diff, const std::vector<std::string>& files) {
  std::string kept;
  while (!diff.empty()) {
    const std::size_t next = diff.find("\ndiff --git ");
    const std::string_view section = diff.substr(0, next == diff.npos ? next : next + 1);
    diff.remove_prefix(section.size());
    const auto about = [&](const std::string& file) { return is_about(section, file); };
    if (std::ranges::none_of(files, about)) kept += section;
  }
  return kept;
}

// Collects what a pack has, then writes it.
class Packer {
 public:
  Packer(store::Store& store, DiskFiles files) : store_(store), files_(std::move(files)) {}

  base::Result<void> collect(std::vector<store::RunRecord> runs) {
    manifest_.project = store_.location().project;
    note_secret_names(runs);
    std::vector<RecordedContent> needed_contents;
    std::set<std::pair<std::string, hash::Digest>> made;
    for (store::RunRecord& run : runs) {
      drop_reserved(run.inputs);
      drop_reserved(run.outputs);
      ASSAY_TRY_VOID(drop_reserved_places(run));
      // Links, names that were not there and the network are facts about this machine.
      std::erase_if(run.facts, [](const store::PathFact& fact) {
        return fact.kind != store::PathFact::Kind::kMadeFolder;
      });
      drop_reserved(run.facts);
      if (store::read_a_pipe(run)) {
        leave_out(fmt::format("the standard input of run {}", run.id), store::missed_stdin().text);
      }
      for (const store::Input& needed : store::dependencies_of(run)) {
        if (!needed.blake3) {
          leave_out(needed.path, "its content was not recorded");
        } else if (!made.contains({needed.path, *needed.blake3})) {
          needed_contents.push_back({needed.path, *needed.blake3, needed.size});
        }
      }
      for (const store::Output& output : run.outputs) {
        if (output.blake3) made.insert({output.path, *output.blake3});
      }
      run.processes.clear();
      run.context.user.clear();
      run.context.host.clear();
      manifest_.runs.push_back(std::move(run));
    }
    for (const RecordedContent& content : needed_contents) {
      ASSAY_TRY_VOID(collect_file(content));
    }
    for (store::RunRecord& run : manifest_.runs) collect_source(run);
    return {};
  }

  base::Result<void> write(int fd, const fs::path& where) {
    TarWriter tar(fd, where);
    ASSAY_TRY(const std::string manifest, manifest_text(manifest_));
    ASSAY_TRY_VOID(tar.add("manifest.json", manifest));
    for (const auto& [digest, content] : manifest_.contents) {
      const std::string name = "contents/" + digest.hex();
      const auto text = texts_.find(digest);
      if (text != texts_.end()) {
        ASSAY_TRY_VOID(tar.add(name, text->second));
      } else {
        ASSAY_TRY_VOID(tar.begin(name, content.size));
        ASSAY_TRY_VOID(write_file(tar, sources_.at(digest), digest, content.size));
      }
    }
    return tar.finish();
  }

  PackManifest& manifest() { return manifest_; }

 private:
  template <class Files>
  void drop_reserved(Files& files) {
    std::erase_if(files, [&](const auto& file) {
      const bool reserved = is_reserved(file.path, manifest_.project);
      if (reserved) leave_out(file.path, "it belongs to git or to Assay");
      return reserved;
    });
  }

  // unpack() refuses reserved paths everywhere in a manifest.
  base::Result<void> drop_reserved_places(store::RunRecord& run) {
    if (is_reserved(run.directory, manifest_.project)) {
      return base::fail(base::usage_error(
          fmt::format("run {}", run.id),
          fmt::format("ran in {}, which belongs to git or to Assay and cannot be packed",
                      run.directory),
          "record it in another folder"));
    }
    for (store::Output& output : run.outputs) {
      if (!is_reserved(output.from, manifest_.project)) continue;
      output.from.clear();
      output.status = store::OutputStatus::kCreated;
    }
    std::erase_if(run.redirects, [&](const std::string& text) {
      const auto redirect = parse_redirect(text);
      const bool reserved = redirect && is_reserved(redirect->path, manifest_.project);
      if (reserved) leave_out(redirect->path, "it belongs to git or to Assay");
      return reserved;
    });
    return {};
  }

  // A content that any run read or left under the name of a secret file is secret under every other
  // name too. Empty files hold no secret.
  void note_secret_names(const std::vector<store::RunRecord>& runs) {
    const auto note = [&](const auto& file) {
      if (file.blake3 && *file.blake3 != digest_of_text("") && is_secret_file(file.path)) {
        secrets_.try_emplace(*file.blake3, "it has the content of a file with secrets");
      }
    };
    for (const store::RunRecord& run : runs) {
      std::ranges::for_each(run.inputs, note);
      std::ranges::for_each(run.outputs, note);
      std::ranges::for_each(store::dependencies_of(run), note);
    }
  }

  base::Result<void> collect_file(const RecordedContent& content) {
    if (const auto secret = secrets_.find(content.blake3); secret != secrets_.end()) {
      leave_out(content.path, is_secret_file(content.path)
                                  ? "files of this name usually hold secrets"
                                  : secret->second);
      return {};
    }
    if (manifest_.contents.contains(content.blake3)) return {};
    ASSAY_TRY(const std::optional<std::string> on_disk, find_on_disk(store_, files_, content));
    const Archive archive(store_.location());
    if (!on_disk && !archive.contains(content.blake3)) {
      return base::fail(base::failed_error(
          content.path,
          "has changed since it was read, and the version that was read is not archived",
          "restore it, or pack a newer run"));
    }
    const fs::path found = on_disk ? fs::path(*on_disk) : archive.file_of(content.blake3);
    if (file_contains_secret(found)) {
      const auto [secret, added] = secrets_.emplace(content.blake3, "it contains a secret");
      leave_out(content.path, secret->second);
      return {};
    }
    struct stat status {};
    if (::stat(found.c_str(), &status) != 0) {
      return base::fail(base::system_error(found, "cannot be read", errno));
    }
    sources_[content.blake3] = found;
    manifest_.contents[content.blake3] = {status.st_size, (status.st_mode & S_IXUSR) != 0};
    return {};
  }

  void collect_source(store::RunRecord& run) {
    if (!run.context.git || run.context.git->diff.empty()) return;
    std::string& diff = run.context.git->diff;
    std::vector<std::string> files;
    for (const LeftOutFile& one : manifest_.left_out) {
      const base::PathMap below(run.context.git->root, "");
      if (below.inside(one.path)) files.push_back(below.path(one.path).substr(1));
    }
    diff = without_files(diff, files);
    // The recorded diff still applies to its commit, so its context and removed lines can hold
    // secrets.
    diff = redact_diff(std::move(diff), run.context.git->left_out, DiffLines::kAll);
    if (diff.empty()) return;
    const hash::Digest digest = digest_of_text(diff);
    manifest_.contents[digest] = {static_cast<std::int64_t>(diff.size()), false};
    texts_[digest] = std::exchange(diff, digest.hex());
  }

  void leave_out(const std::string& path, const std::string& why) {
    for (const LeftOutFile& one : manifest_.left_out) {
      if (one.path == path) return;
    }
    manifest_.left_out.push_back({path, why});
  }

  static base::Result<void> write_file(TarWriter& tar, const fs::path& path,
                                       const hash::Digest& digest, std::int64_t size) {
    ASSAY_TRY(const base::UniqueFd file, base::open_regular(path));
    const base::Error changed =
        base::failed_error(path, "changed while it was packed", "try again");
    hash::Hasher hasher;
    std::vector<char> piece(std::size_t{1} << 20);
    while (size > 0) {
      const auto wanted = std::min(piece.size(), static_cast<std::size_t>(size));
      const ssize_t got = ::read(file.get(), piece.data(), wanted);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return base::fail(changed);
      const std::string_view bytes(piece.data(), static_cast<std::size_t>(got));
      hasher.update(std::as_bytes(std::span(bytes)));
      ASSAY_TRY_VOID(tar.write(bytes));
      size -= got;
    }
    if (hasher.finish() != digest) return base::fail(changed);
    return {};
  }

  store::Store& store_;
  DiskFiles files_;
  PackManifest manifest_;
  std::map<hash::Digest, fs::path> sources_;
  std::map<hash::Digest, std::string> texts_;    // diffs
  std::map<hash::Digest, std::string> secrets_;  // contents that are not packed, and why
};

}  // namespace

base::Result<PackReport> pack(store::Store& store, const RunOrArtifact& what, const fs::path& file,
                              bool replace) {
  std::error_code error;
  if (!replace && fs::exists(fs::symlink_status(file, error))) {
    return base::fail(
        base::usage_error(file, "already exists", "replace it with --force, or name another"));
  }
  ASSAY_TRY(std::vector<store::RunRecord> runs, runs_of(store, what));
  ASSAY_TRY(DiskFiles files, DiskFiles::open(store));
  Packer packer(store, std::move(files));
  if (const auto* artifact = std::get_if<Artifact>(&what)) {
    packer.manifest().artifact_path = artifact->path;
    packer.manifest().artifact = artifact->blake3;
  }
  ASSAY_TRY_VOID(packer.collect(std::move(runs)));

  ASSAY_TRY(NewFile made,
            NewFile::make(file.has_parent_path() ? file.parent_path() : ".", ".assay-pack-"));
  ASSAY_TRY(ZstdStream stream, ZstdStream::writing_to(made.fd(), file.extension() != ".tar"));
  ASSAY_TRY_VOID(packer.write(stream.descriptor(), file));
  ASSAY_TRY_VOID(stream.finish(file));
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(made.fd(), 0666 & ~mask);
  struct stat status {};
  ::fstat(made.fd(), &status);
  ASSAY_TRY_VOID(made.sync_and_rename_to(
      file, replace ? NewFile::Existing::kReplace : NewFile::Existing::kKeep));

  PackReport report{.manifest = std::move(packer.manifest()), .file_bytes = status.st_size};
  for (const auto& [digest, content] : report.manifest.contents) {
    report.contents_bytes += content.size;
  }
  return report;
}

}  // namespace assay::lineage
