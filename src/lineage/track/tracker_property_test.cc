// Random runs, performed on disk, against a model of which file is where and what it contained
// before the run. The tracker's results must agree with the model and with the final tree.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>

#include "lineage/testing/tracker_scenario.h"
#include "lineage/track/tracker.h"

namespace assay::lineage {
namespace {

using store::OutputStatus;
using testing::digest_of;
using testing::TrackerScenario;
namespace fs = std::filesystem;

struct Thing {
  bool foreign = false;
  std::string content;                // before the run
  std::set<std::string> start_paths;  // before the run
  bool touched = false;               // some call was about this file itself, under
  std::set<std::string> seen;         // these names; its other names cannot be known
  bool written = false;
  bool read_first = false;  // before it was written
};
using Tree = std::map<std::string, std::shared_ptr<Thing>>;

class RandomRun {
 public:
  RandomRun() {
    for (const char* folder : {"d", "e"}) scenario_.folder(folder);
    scenario_.alias("l", "d");
    for (const std::string& name : names()) {
      if (*rc::gen::inRange(0, 2) == 0 || !has_folder(name)) continue;
      auto thing = std::make_shared<Thing>();
      thing->foreign = true;
      thing->content = "before " + name;
      scenario_.put(name, thing->content);
      add_start(name, thing);
      if (*rc::gen::inRange(0, 6) == 0) {
        const std::string second = name + "-too";
        fs::create_hard_link(scenario_.path(name), scenario_.path(second));
        add_start(second, thing);
      }
    }
    before_ = now_;
    scenario_.begin();
  }

  void step() {
    scenario_.mode.events_before_change = *rc::gen::arbitrary<bool>();
    scenario_.mode.stamped_creation = *rc::gen::arbitrary<bool>();
    const std::string name = pick();
    const std::string other = pick();
    const auto found = now_.find(name);
    const int kind = *rc::gen::inRange(0, 14);
    if (kind == 13) return move_folder();
    if (!has_folder(name) || !has_folder(other)) return;
    if (found == now_.end()) {
      if (kind > 4) return;
      log_ << "create " << name << "\n";
      scenario_.create(spelled(name), fresh());
      now_[name] = std::make_shared<Thing>();
      return;
    }
    Thing& thing = *found->second;
    change(kind, name, other, thing);
  }

  void check() {
    const auto& recorded = scenario_.finish();
    RC_LOG(log_.str());
    for (const auto& missed : recorded.missing) RC_FAIL("missed " + missed.what + missed.text);
    check_inputs(recorded);
    check_outputs(recorded);
  }

 private:
  static std::vector<std::string> names() {
    std::vector<std::string> all;
    for (const char* folder : {"", "d/", "e/", "f/"}) {
      for (const char* base : {"a", "b", "c"}) all.push_back(std::string(folder) + base);
    }
    return all;
  }
  void add_start(const std::string& name, const std::shared_ptr<Thing>& thing) {
    thing->start_paths.insert(name);
    now_[name] = thing;
  }
  std::string pick() {
    std::vector<std::string> all = names();
    for (const auto& [name, thing] : now_) all.push_back(name);
    return *rc::gen::elementOf(all);
  }
  bool has_folder(const std::string& name) const {
    return fs::is_directory(fs::path(scenario_.path(name)).parent_path());
  }
  std::string fresh() { return "content " + std::to_string(++count_); }

  // One of the ways to say the path.
  std::string spelled(const std::string& name) {
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        return "./" + name;
      case 1:
        return "e/../" + name;
      case 2:
        if (name.starts_with("d/")) return "l/" + name.substr(2);
        return name;
      default:
        return name;
    }
  }

  void change(int kind, const std::string& name, const std::string& other, Thing& thing) {
    const bool taken = now_.contains(other);
    if ((kind == 7 && taken) || (kind == 8 && (!taken || name == other))) return;
    thing.touched = true;
    thing.seen.insert(name);
    switch (kind) {
      case 0:
      case 1:
        log_ << "read " << name << "\n";
        if (!thing.written) thing.read_first = true;
        return scenario_.read(spelled(name));
      case 2:
        log_ << "append " << name << "\n";
        thing.written = true;
        return scenario_.append(spelled(name), fresh());
      case 3:
        log_ << "overwrite " << name << "\n";
        thing.written = true;
        return scenario_.overwrite(spelled(name), fresh());
      case 4:
        log_ << "update " << name << "\n";
        if (!thing.written) thing.read_first = true;
        thing.written = true;
        return scenario_.update(spelled(name), fresh());
      case 5:
        log_ << "open " << name << "\n";
        return scenario_.open_only(spelled(name));
      case 6:
        log_ << "remove " << name << "\n";
        scenario_.remove(spelled(name));
        now_.erase(name);
        return;
      case 7:
        log_ << "link " << name << " " << other << "\n";
        scenario_.link(spelled(name), spelled(other));
        now_[other] = now_[name];
        thing.seen.insert(other);
        return;
      case 8:
        log_ << "exchange " << name << " " << other << "\n";
        now_[other]->touched = true;
        now_[other]->seen.insert({name, other});
        thing.seen.insert(other);
        scenario_.rename(spelled(name), spelled(other), true);
        std::swap(now_[name], now_[other]);
        return;
      default:
        log_ << "rename " << name << " " << other << "\n";
        scenario_.rename(spelled(name), spelled(other));
        if (name == other || (taken && now_[other] == now_[name])) return;
        if (taken) {
          now_[other]->touched = true;
          now_[other]->seen.insert(other);
        }
        thing.seen.insert(other);
        now_[other] = now_[name];
        now_.erase(name);
    }
  }

  void move_folder() {
    const std::string from = fs::exists(scenario_.path("d")) ? "d" : "f";
    const std::string to = from == "d" ? "f" : "d";
    log_ << "move " << from << "\n";
    scenario_.rename(from, to);
    Tree moved;
    for (const auto& [name, thing] : now_) {
      const std::string then = name.starts_with(from + "/") ? to + name.substr(1) : name;
      if (thing->seen.contains(name)) thing->seen.insert(then);
      moved[then] = thing;
    }
    now_ = moved;
  }

  void check_inputs(const testing::RecordedResults& recorded) {
    for (const auto& [name, input] : recorded.inputs) {
      RC_ASSERT(before_.contains(name));
      const Thing& thing = *before_.at(name);
      RC_ASSERT(input.blake3 == digest_of(thing.content));
      RC_ASSERT(thing.read_first || has_moved(thing));
    }
    for (const auto& [name, thing] : before_) {
      const bool wanted =
          thing->read_first || (thing->touched && !thing->written && has_moved(*thing, true));
      if (!wanted) continue;
      RC_LOG("wants input " + name + "\n");
      RC_ASSERT(std::ranges::any_of(thing->start_paths, [&](const std::string& path) {
        return recorded.inputs.contains(path);
      }));
    }
  }

  // Whether it has a name that it did not have, and that the run used.
  bool has_moved(const Thing& thing, bool seen = false) const {
    return std::ranges::any_of(now_, [&](const auto& entry) {
      return (!seen || thing.seen.contains(entry.first)) && entry.second.get() == &thing &&
             !thing.start_paths.contains(entry.first);
    });
  }

  void check_outputs(const testing::RecordedResults& recorded) {
    std::set<std::string> from;
    for (const auto& [name, output] : recorded.outputs) {
      RC_LOG("output " + name + " " + std::to_string(static_cast<int>(output.status)) + "\n");
      if (output.status == OutputStatus::kRenamed) from.insert(output.from);
      if (output.status == OutputStatus::kDeleted) {
        RC_ASSERT(before_.contains(name) && !now_.contains(name) && !output.blake3);
        continue;
      }
      RC_ASSERT(now_.contains(name));
      const Thing& thing = *now_.at(name);
      RC_ASSERT(output.blake3 == digest_of(testing::read_file(scenario_.path(name))));
      const bool same = before_.contains(name) && before_.at(name).get() == &thing;
      RC_ASSERT(!same || thing.written);
      if (output.status == OutputStatus::kCreated) RC_ASSERT(!before_.contains(name));
      if (output.status == OutputStatus::kModified) RC_ASSERT(before_.contains(name));
      if (output.status == OutputStatus::kRenamed)
        RC_ASSERT(thing.start_paths.contains(output.from));
      if (output.status == OutputStatus::kLinked) RC_ASSERT(now_.at(output.from).get() == &thing);
    }
    for (const auto& [name, thing] : now_) {
      const bool same = before_.contains(name) && before_.at(name) == thing;
      // Names that went with their folder and were never used are not known.
      const bool known = !thing->foreign || thing->seen.contains(name);
      if (known && (!same || thing->written)) RC_ASSERT(recorded.outputs.contains(name));
    }
    for (const auto& [name, thing] : before_) {
      if (now_.contains(name) || !thing->seen.contains(name)) continue;
      RC_LOG("gone " + name + "\n");
      RC_ASSERT(recorded.outputs.contains(name) || from.contains(name));
    }
  }

  TrackerScenario scenario_;
  Tree before_;
  Tree now_;
  int count_ = 0;
  std::ostringstream log_;
};

RC_GTEST_PROP(TrackerProperty, AgreesWithTheTreeBeforeAndAfter, ()) {
  RandomRun run;
  const int steps = *rc::gen::inRange(0, 25);
  for (int i = 0; i < steps; ++i) run.step();
  run.check();
}

}  // namespace
}  // namespace assay::lineage
