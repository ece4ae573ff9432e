// Tracker: decides from a run's events which files are its inputs and outputs, and in which state.
//
// A file is an input if the run read it before changing it, or gave it another name; its content is
// what it was when first read. A file is an output if, when the run is over, a path leads to other
// content than before. Files are followed by device and inode through renames and links; names are
// kept apart from files (path_table.h, file_table.h), so an output's status is the difference
// between what stood at its path before the run and what stands there now.
//
//   tracker.cc         events and what they do to files
//   tracker_locate.cc  which file an event is about
//   tracker_names.cc   renames, links, removals
//   tracker_folders.cc folders that move, with all that is below them
//   tracker_hashes.cc  pre-images: what is hashed when
//   tracker_times.cc   what times say of content, and what they do not
//   tracker_finish.cc  the end: what is compared, and inputs
//   tracker_outputs.cc what the run leaves, and what is not told
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lineage/track/file_table.h"
#include "lineage/track/filter.h"
#include "lineage/track/hash_queue.h"
#include "lineage/track/missed_list.h"
#include "lineage/track/path_table.h"
#include "lineage/track/places.h"
#include "lineage/track/process_list.h"
#include "observe/collect/event/event.h"
#include "store/run.h"

namespace assay::lineage {

// Who is told at the end: inputs, outputs and files left out in the order of their paths, each kind
// after the other, then processes, then what was missed. `rule` says why it was kept or left out.
class Results {
 public:
  virtual ~Results() = default;
  virtual void input(store::Input input, const Rule& rule) = 0;
  virtual void output(store::Output output, const Rule& rule) = 0;
  // A file that is neither, and that a person might look for. Where it was read, its path is the
  // one it had then.
  struct LeftOut {
    std::string path;
    bool read = false;
    bool changed = false;  // written, made, renamed or removed
  };
  virtual void left_out(LeftOut file, const Rule& rule) = 0;
  virtual void process(store::Process process) = 0;
  virtual void missed(store::Missed missed) = 0;
};

class Tracker : public collect::Sink {
 public:
  struct Options {
    std::int64_t started_ns = 0;  // monotonic clock at the run's start
    // Larger files are not hashed while a process waits to change them.
    std::int64_t pre_image_limit = std::int64_t{4} << 30U;
    // The same for files that nobody has read, so that appending to a large log does not wait for
    // more than a blink.
    std::int64_t unread_limit = std::int64_t{256} << 20U;
    // Descriptors held open for files that lose their name before they are hashed.
    std::size_t most_held = 512;
    // Files below a folder that moves which are looked for, while a process waits.
    std::size_t most_moved = 100'000;
    // Whether events are told as they happen. If not (a log is read after a crash), files that
    // changed since are the run's own doing as likely as anyone's.
    bool live = true;
    // Tasks that the queue is given at a time. One takes twenty times the memory of a number, so
    // it gets no more than it needs to be busy until the next event, or on_tick().
    std::size_t most_pending = 50'000;
    // Whether a program outside the run that has this file open for writing wrote meanwhile. Asked
    // at the end, of files that the command was passed open and that have changed.
    std::function<bool(const wire::Stamp& file)> written_outside = {};
    HashQueue::Options hashing;
  };

  // The filter must outlive the tracker.
  Tracker(const Options& options, Filter& filter);

  void happened(const collect::Event& event) override;
  void about_to_change(std::string_view path, const wire::Stamp& stamp,
                       collect::Change change) override;

  void on_tick() override { take_digests(); }
  // The run is over. Once.
  void finish(Results& results);

 private:
  struct Spot {
    PathId path = 0;
    FileId file = 0;  // 0: nothing of interest is there
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
  enum class Look {
    kOpened,  // through links; a file that is gone meanwhile is taken from the event
    kLinked,  // through links; a file that is neither known nor there is none
    kName,    // the same, and a link is not followed
  };
  // What the file system has at a path.
  struct Sight {
    bool there = false;  // the regular file that is meant
    bool other = false;  // something that is no regular file
    std::string path;    // where it is, links followed
    wire::Stamp stamp;
  };
  struct Changed;  // an output in the making, see tracker_outputs.cc

  // tracker.cc
  void read(Spot spot, const wire::Stamp* stamp);
  void write(FileId file, const wire::Stamp* stamp);
  void create(const collect::Event& event, const wire::Stamp* stamp);
  void elsewhere(const wire::Stamp* stamp);
  void inherited(Spot spot, const collect::Event& event);
  [[nodiscard]] bool made_before_told(PathId path, FileId file, const wire::Stamp& stamp) const;

  // tracker_locate.cc
  Spot locate(std::string_view path, const wire::Stamp* stamp, Look look);
  Spot look_for(std::string_view path, const wire::Stamp* stamp, Look look);
  [[nodiscard]] Sight sight(const Place& place, const wire::Stamp* stamp, Look look) const;
  [[nodiscard]] std::string text_of(const Place& place) const;
  Spot known_but_dead(FileId file, const Place& place, const wire::Stamp& stamp, bool there);
  PathId add_path(FolderId folder, std::string_view name);
  void attach(PathId path, FileId file);

  // tracker_names.cc
  void look_for_links(Spot spot);
  void bind(PathId path, FileId file);
  void unbind(PathId path);
  [[nodiscard]] PathId origin(PathId path, FileId file) const;
  void remove(const collect::Event& event, const wire::Stamp* stamp);
  void rename(const collect::Event& event, const wire::Stamp* stamp);
  void link(const collect::Event& event, const wire::Stamp* stamp);
  void settle_links();
  void apply(const std::vector<Move>& moves);

  // tracker_folders.cc
  [[nodiscard]] std::string folder_before(std::string folder) const;
  void move_folders(const collect::Event& event, const wire::Stamp* stamp,
                    std::vector<Move>& moves);
  void meet_files(const std::string& standing, const std::string& from, const std::string& to);
  void meet(PathId path, const wire::Stamp& stamp);
  void add_moves(const std::string& from, const std::string& to, std::vector<Move>& moves);

  // tracker_hashes.cc
  void take_digests();
  void want(FileId file, PathId path);
  void want_now(FileId file, PathId path);
  void note_before(FileId file, PathId path);
  void wait_for(FileId file);
  void refill();
  void hold(FileId file, PathId path);
  HashTask task_for(FileId file, PathId path) const;
  void take_result(const HashResult& result);
  void give_up(FileId file, std::string what, std::string text);
  void hash_the_rest();
  void name_all_files();

  // tracker_times.cc
  [[nodiscard]] bool has_run_content(FileId file, const wire::Stamp* stamp) const;
  [[nodiscard]] bool is_unchanged(FileId file, const wire::Stamp& stamp) const;
  [[nodiscard]] bool looks_unchanged(FileId file, const wire::Stamp& stamp) const;
  [[nodiscard]] bool holds_the_same(PathId path, const wire::Stamp& stamp,
                                    const hash::Digest& digest) const;
  void doubt(Spot spot, const std::optional<wire::Stamp>& now);
  void times_changed(FileId file);
  void changed_outside(FileId file);
  void say_changed(FileId file, std::string_view what);

  // tracker_finish.cc
  void settle_names();
  void settle_name(PathId path);
  void mark_origins();
  void judge_again();
  [[nodiscard]] std::vector<PathId> in_order() const;
  void tell_inputs(const std::vector<PathId>& order, Results& results);

  // tracker_outputs.cc
  void tell_outputs(const std::vector<PathId>& order, Results& results);
  void tell_left_out(const std::vector<PathId>& order, Results& results);
  std::optional<Changed> change_at(PathId path);
  [[nodiscard]] std::optional<hash::Digest> before_of(const Changed& changed) const;
  [[nodiscard]] bool is_anothers(FileId file, const std::optional<wire::Stamp>& now) const;
  void hash_outputs(std::vector<Changed>& window);
  [[nodiscard]] const Rule* reason_left_out(PathId path) const;
  [[nodiscard]] bool kept(PathId path) const { return filter_.rule(paths_[path].rule).keep; }

  const Options options_;
  Filter& filter_;
  PathTable paths_;
  FileTable files_;
  Places places_;
  ProcessList processes_;
  MissedList missed_;
  std::vector<FolderMove> folder_moves_;
  bool other_views_ = false;  // some process may mean other files by its paths
  std::size_t unnamed_ = 0;   // files made without a name whose inode is not known
  std::size_t most_held_;
  std::vector<HashResult> taken_;
  std::vector<FileId> backlog_;  // wanted, and not yet in the queue
  HashQueue queue_;              // last: its threads use the tables' texts
};

}  // namespace assay::lineage
