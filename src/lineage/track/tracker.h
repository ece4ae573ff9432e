// Tracker: decides from a run's events which files are its inputs and outputs, and in which state.
//
// A file is an input if the run read it before changing it, or renamed or linked it; its content is
// that at the first read. (A model that the run downloads into a cache is an input, too.) A file is
// an output if, at the end of the run, its path has other content than before. Files are followed
// by device and inode through renames and links; names are separate from files (path_table.h,
// file_table.h), so an output's status is the difference between what was at its path before the
// run and what is there now.
//
//   tracker.cc         events and what they do to files
//   tracker_locate.cc  which file an event is about
//   tracker_names.cc   renames, links, removals
//   tracker_folders.cc renamed folders, with all files below them
//   tracker_hashes.cc  pre-images: what is hashed when
//   tracker_times.cc   whether a file changed, by its times
//   tracker_finish.cc  the end of the run: comparison with the file system, inputs
//   tracker_facts.cc   links that were followed or made, the network
//   tracker_lookups.cc folders that were listed, names that were asked about, there or not
//   tracker_outputs.cc outputs, and why other files are left out
#pragma once

#include <dirent.h>
#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lineage/filter/filter.h"
#include "lineage/track/file_table.h"
#include "lineage/track/hash_queue.h"
#include "lineage/track/path_resolver.h"
#include "lineage/track/path_statuses.h"
#include "lineage/track/path_table.h"
#include "lineage/track/process_list.h"
#include "lineage/track/results.h"
#include "observe/collect/event/event.h"
#include "store/run.h"

namespace assay::lineage {

class Tracker : public collect::EventSink {
 public:
  struct Options {
    std::int64_t started_ns = 0;  // monotonic clock at the run's start
    // Larger files are not hashed while a process waits to change them.
    std::int64_t pre_image_limit = std::int64_t{4} << 30U;
    // The same for files that the run has not read, so that appending to a large log is not delayed
    // noticeably.
    std::int64_t unread_limit = std::int64_t{256} << 20U;
    // Descriptors kept open for files that lose their name before they are hashed.
    std::size_t max_open_files = 512;
    // Files listed below a folder that is being renamed, while a process waits.
    std::size_t max_moved_files = 100'000;
    // Whether events arrive as they happen. If not (a log is replayed after a crash), later changes
    // may be the run's own.
    bool live = true;
    // Tasks in the hash queue. A task takes twenty times the memory of an id, so the queue gets no
    // more than it needs to be busy until the next event or idle call.
    std::size_t max_pending = 50'000;
    // The file system's clock at the run's start; 0: not known.
    std::int64_t started_file_ns = 0;
    std::string directory = {};  // in which the command was started
    std::string project = {};    // the project's folder; empty: none
    // Whether a program outside the run that has this file open for writing may have written to it.
    // Called at the end, for files that the command inherited open and that have changed.
    std::function<bool(const wire::Stamp& file)> written_outside = {};
    HashQueue::Options hashing;
  };

  // The filter must outlive the tracker.
  Tracker(const Options& options, Filter& filter);

  void on_event(const collect::Event& event) override;
  void before_change(std::string_view path, const wire::Stamp& stamp,
                     collect::Change change) override;

  void on_tick() override { take_hash_results(); }
  // Reports everything. Call once, after the last event.
  void finish(Results& results);

 private:
  struct Located {
    PathId path = 0;
    FileId file = 0;  // 0: not a file to track
  };
  struct Move {
    PathId from = 0;
    PathId to = 0;
    FileId file = 0;
    PathId origin = 0;  // where the file was before it was first moved
  };
  struct FolderMove {
    std::string from;
    std::string to;
    bool exchange = false;
  };
  enum class Lookup {
    kOpened,  // follows links; if the file no longer exists, the event's stamp identifies it
    kLinked,  // follows links; a file that is neither known nor present is ignored
    kName,    // the same without following links
  };
  // What is at a path on disk.
  struct DiskEntry {
    bool there = false;  // the expected regular file
    bool other = false;  // something else than a regular file
    std::string path;    // links resolved
    wire::Stamp stamp;
  };
  struct Changed;  // a future output, see tracker_outputs.cc
  // A folder that was listed. Python lists the folders that it imports from by their absolute
  // paths, each once in a process, and again if it has changed since; `make` lists the folders of
  // its targets.
  struct Listing {
    bool by_make = false;
    bool by_python = false;                // by a relative path
    std::map<pid_t, int> by_imports = {};  // how often by absolute paths, in each Python process
    bool by_others = false;
    std::int64_t changed_ns = 0;      // the folder, when Python listed it last
    std::set<std::string> made = {};  // names that the run had made there when it listed it
  };
  // Where Python programs of the run looked for modules.
  struct PythonSearch {
    std::unordered_set<std::string> folders;  // in which they found some; the working directory
    bool metadata = false;  // they loaded what reads metadata of packages, for which it lists these
  };
  enum class Purpose {
    kImport,  // to find modules
    kLookup,  // probably to look names up
    kNames,   // for the names in it
  };

  // tracker.cc
  void read(Located located, const wire::Stamp* stamp);
  void write(FileId file, const wire::Stamp* stamp);
  void create(const collect::Event& event, const wire::Stamp* stamp);
  void create_unreachable(const wire::Stamp* stamp);
  void inherited(Located located, const collect::Event& event);
  [[nodiscard]] bool is_late_creation(PathId path, FileId file, const wire::Stamp& stamp) const;

  // tracker_locate.cc
  Located locate(std::string_view path, const wire::Stamp* stamp, Lookup lookup);
  Located locate_on_disk(std::string_view path, const wire::Stamp* stamp, Lookup lookup);
  [[nodiscard]] DiskEntry disk_entry(const ResolvedPath& resolved, const wire::Stamp* stamp,
                                     Lookup lookup) const;
  [[nodiscard]] std::string text_of(const ResolvedPath& resolved) const;
  Located find_unlinked(FileId file, const ResolvedPath& resolved, const wire::Stamp& stamp,
                        bool there);
  PathId add_path(FolderId folder, std::string_view name);
  void attach(PathId path, FileId file);

  // tracker_names.cc
  void find_other_links(Located located);
  void bind(PathId path, FileId file);
  void unbind(PathId path);
  [[nodiscard]] PathId origin(PathId path, FileId file) const;
  void remove(const collect::Event& event, const wire::Stamp* stamp);
  void rename(const collect::Event& event, const wire::Stamp* stamp);
  void link(const collect::Event& event, const wire::Stamp* stamp);
  void reconcile_links();
  void apply(const std::vector<Move>& moves);

  // tracker_folders.cc
  [[nodiscard]] std::string folder_before(std::string folder) const;
  void move_folders(const collect::Event& event, const wire::Stamp* stamp,
                    std::vector<Move>& moves);
  void register_files_below(const std::string& current, const std::string& from,
                            const std::string& to);
  void register_file(PathId path, const wire::Stamp& stamp);
  void add_moves(const std::string& from, const std::string& to, std::vector<Move>& moves);

  // tracker_hashes.cc
  void take_hash_results();
  void request_hash(FileId file, PathId path);
  void hash_now(FileId file, PathId path);
  void hash_before_write(FileId file, PathId path);
  void wait_for_hash(FileId file);
  void submit_backlog();
  void hash_before_unlink(FileId file, PathId path);
  HashTask task_for(FileId file, PathId path) const;
  void apply_hash_result(const HashResult& result);
  void give_up(FileId file, std::string what, std::string text);
  void finish_hashing();
  void update_file_names();

  // tracker_times.cc
  [[nodiscard]] bool has_content_of_run(FileId file, const wire::Stamp* stamp) const;
  [[nodiscard]] bool is_unchanged(FileId file, const wire::Stamp& stamp) const;
  [[nodiscard]] bool looks_unchanged(FileId file, const wire::Stamp& stamp) const;
  [[nodiscard]] bool has_same_content(PathId path, const wire::Stamp& stamp,
                                      const hash::Digest& digest) const;
  void check_changed_input(Located located, const std::optional<wire::Stamp>& now);
  void report_times_changed(FileId file);
  void report_outside_change(FileId file);
  void report_change(FileId file, std::string_view what);

  // tracker_finish.cc
  void reconcile_names();
  void reconcile_name(PathId path);
  void mark_origins();
  void reapply_filter();
  [[nodiscard]] std::vector<PathId> paths_in_order() const;
  void report_inputs(const std::vector<PathId>& order, Results& results);
  [[nodiscard]] PlaceOfFile place_of(PathId path) const;
  [[nodiscard]] bool is_input(PathId path) const;
  void report_input(PathId path, const PathStatus& now, Results& results);

  // tracker_facts.cc
  void note_link_path(std::string_view given, PathId id);
  void note_link(std::string_view path);
  void note_network(std::string_view text, const wire::Stamp* stamp);
  void report_links(Results& results);
  void report_facts(Results& results);

  // tracker_lookups.cc
  void note_listed(const collect::Event& event);
  void note_absent(std::string_view path);
  void note_queried(const collect::Event& event);
  [[nodiscard]] bool is_python(pid_t process);
  [[nodiscard]] bool is_listing(const collect::Event& event);
  [[nodiscard]] bool kept_in_project(const std::string& path);
  [[nodiscard]] PythonSearch python_search() const;
  static Purpose purpose_of(const std::string& folder, const Listing& listing,
                            const PythonSearch& python);
  [[nodiscard]] std::set<std::string> made_in(const std::string& folder);
  [[nodiscard]] bool is_by_others(int folder, const dirent& entry, PathId path) const;
  [[nodiscard]] bool changes_names_in(const std::string& folder);
  struct ListedNames {
    std::vector<std::string> names;
    bool others_changed = false;  // another program changed the folder meanwhile
  };
  [[nodiscard]] std::optional<ListedNames> names_listed(const std::string& folder,
                                                        const Listing& listing);
  [[nodiscard]] bool is_changed_by_run(const std::string& path);
  void report_listed(Results& results);
  void report_absent(Results& results);
  void report_queried(Results& results);

  // tracker_outputs.cc
  void report_outputs(const std::vector<PathId>& order, Results& results);
  void report_left_out(const std::vector<PathId>& order, Results& results);
  [[nodiscard]] bool may_have_changed(PathId path) const;
  std::optional<Changed> change_at(PathId path);
  std::optional<Changed> change_at(PathId path, PathStatus now);
  [[nodiscard]] std::optional<hash::Digest> before_of(const Changed& changed) const;
  [[nodiscard]] bool is_written_by_others(FileId file, const std::optional<wire::Stamp>& now) const;
  void hash_outputs(std::vector<Changed>& window);
  [[nodiscard]] const FilterRule* reason_left_out(PathId path) const;
  [[nodiscard]] bool kept(PathId path) const { return filter_.rule(paths_[path].rule).keep; }

  const Options options_;
  Filter& filter_;
  PathTable paths_;
  FileTable files_;
  PathResolver resolver_;
  ProcessList processes_;
  MissedList missed_;
  std::vector<FolderMove> folder_moves_;
  std::set<std::string> link_paths_;  // paths of opened files that are not their real paths
  std::set<std::string> made_links_;  // symbolic links that the run made, moved or removed
  std::map<std::string, Listing> listed_;
  std::unordered_map<std::string, bool> python_scripts_;   // programs, whether they are
  std::unordered_map<std::string, bool> static_programs_;  // the same
  std::set<std::string> absent_;
  std::unordered_map<std::string, bool> queried_;  // and whether a size was told
  // By host name or address; for an address, by connection.
  std::map<std::string, std::map<std::uint64_t, store::Traffic>> network_;
  bool other_namespaces_ = false;  // some process has its own mount namespace
  std::size_t unnamed_ = 0;        // files created without a name whose inode is not known
  std::size_t max_open_files_;
  std::vector<HashResult> taken_;
  std::vector<FileId> backlog_;  // to be hashed, not yet in the queue
  HashQueue queue_;              // last: its threads use strings of the tables
};

}  // namespace assay::lineage
