// assay checkpoint diff A B: whether two checkpoints are the same to the bit, and where they
// differ, whichever layouts wrote them. Exit 0 if they are equal, 1 if not, 3 if one cannot be
// read.
#include "assay/verbs.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/text.h"
#include "base/units.h"
#include "train/checkpoint/diff.h"
#include "train/checkpoint/folder_name.h"
#include "train/resume.h"

namespace assay::cli {
namespace {

using base::ExitCode;
using base::Json;
using base::Result;
using checkpoint::Checkpoint;
using checkpoint::Difference;
using checkpoint::StateDifference;
using checkpoint::TensorDifference;
using checkpoint::TensorRelation;

constexpr std::size_t kMostRows = 20;

struct CheckpointDiffOptions {
  std::string a;
  std::string b;
};

// Exit code 1 means that they differ, so an unreadable checkpoint needs another code.
base::Error unreadable(base::Error error) {
  if (error.code == ExitCode::kNo) error.code = ExitCode::kUnfit;
  return error;
}

const char* relation_text(TensorRelation relation) {
  switch (relation) {
    case TensorRelation::kOnlyInA:
      return "only in A";
    case TensorRelation::kOnlyInB:
      return "only in B";
    case TensorRelation::kOtherShape:
      return "another type or shape";
    case TensorRelation::kOtherValues:
      return "other values";
  }
  return "";
}

std::string shape_text(const checkpoint::TensorInfo& info) {
  return fmt::format("{} [{}]", checkpoint::dtype_name(info.dtype), fmt::join(info.shape, ", "));
}

Json tensor_json(const TensorDifference& one) {
  Json json{{"part", one.part}, {"name", one.name}, {"relation", relation_text(one.relation)}};
  if (one.relation != TensorRelation::kOnlyInB) json["a"] = shape_text(one.a);
  if (one.relation != TensorRelation::kOnlyInA) json["b"] = shape_text(one.b);
  if (one.relation != TensorRelation::kOtherValues) return json;
  json["elements"] = one.elements;
  json["differing"] = one.differing;
  json["not_a_number"] = one.nans;
  json["largest_difference"] = one.largest;
  json["first"] = {{"element", one.first}, {"a", one.first_a}, {"b", one.first_b}};
  return json;
}

Json states_json(const std::vector<StateDifference>& list) {
  Json json = Json::array();
  for (const StateDifference& one : list) {
    json.push_back({{"key", one.key}, {"a", one.a}, {"b", one.b}});
  }
  return json;
}

Json difference_json(const Checkpoint& a, const Checkpoint& b, const Difference& found) {
  Json json{{"a", a.folder().string()},
            {"b", b.folder().string()},
            {"equal", found.equal()},
            {"compared_tensors", found.compared_tensors},
            {"compared_bytes", found.compared_bytes},
            {"state", states_json(found.state)},
            {"notes", states_json(found.notes)},
            {"tensors", Json::array()}};
  for (const TensorDifference& one : found.tensors) json["tensors"].push_back(tensor_json(one));
  return json;
}

// A value in one cell: the lines of a text, or JSON.
std::string short_value(const Json& value) {
  constexpr std::size_t kMostColumns = 60;
  if (value.is_null() || (value.is_array() && value.empty())) return "—";
  if (!value.is_array()) return base::shortened(value.dump(), kMostColumns);
  std::vector<std::string> lines;
  for (const Json& line : value) {
    lines.push_back(line.is_string() ? line.get<std::string>() : line.dump());
  }
  return base::shortened(base::printable(fmt::format("{}", fmt::join(lines, "; "))), kMostColumns);
}

// How much of it differs: because it is no state, not what.
std::string note_text(const StateDifference& one) {
  const auto count = [](const Json& value) {
    const auto lines = static_cast<std::int64_t>(value.is_array() ? value.size() : 1);
    return base::counted(value.is_null() ? 0 : lines, "line");
  };
  return fmt::format("note: {} differs ({} only in A, {} only in B), but is no training state\n",
                     one.key, count(one.a), count(one.b));
}

std::string what_differs(const TensorDifference& one) {
  if (one.relation == TensorRelation::kOtherShape) {
    return fmt::format("{} and {}", shape_text(one.a), shape_text(one.b));
  }
  if (one.relation != TensorRelation::kOtherValues) return relation_text(one.relation);
  std::string text =
      fmt::format("{} of {} elements", base::grouped(one.differing), base::grouped(one.elements));
  if (one.nans > 0) text += fmt::format(", {} not a number", base::grouped(one.nans));
  return text;
}

void print_difference(const Session& session, const Difference& found) {
  for (const StateDifference& one : found.notes) session.print(note_text(one));
  if (!found.state.empty()) {
    base::Table table({"state", "A", "B"});
    for (const StateDifference& one : found.state) {
      table.row({one.key, short_value(one.a), short_value(one.b)});
    }
    session.print(table);
  }
  if (found.tensors.empty()) return;
  base::Table table({"part", "tensor", "differs in", "largest", "first at", "A", "B"});
  for (std::size_t i = 0; i < std::min(found.tensors.size(), kMostRows); ++i) {
    const TensorDifference& one = found.tensors[i];
    const bool values = one.relation == TensorRelation::kOtherValues;
    const auto number = [&](double value) {
      return values ? fmt::format("{:.9g}", value) : std::string();
    };
    table.row({one.part, one.name, what_differs(one),
               values ? fmt::format("{:.3g}", one.largest) : "",
               values ? base::grouped(one.first) : "", number(one.first_a), number(one.first_b)});
  }
  session.print(table);
  if (found.tensors.size() > kMostRows) {
    session.print(
        fmt::format("and {} more tensors; --json lists all\n",
                    base::grouped(static_cast<std::int64_t>(found.tensors.size() - kMostRows))));
  }
}

Result<ExitCode> compare_checkpoints(const Session& session, const CheckpointDiffOptions& options) {
  const auto a = checkpoint::open_newest(options.a);
  if (!a) return base::fail(unreadable(a.error()));
  const auto b = checkpoint::open_newest(options.b);
  if (!b) return base::fail(unreadable(b.error()));
  base::Progress progress({.label = "comparing",
                           .total = a->manifest().bytes(),
                           .unit = base::ProgressUnit::kBytes,
                           .quiet = session.quiet});
  const auto found = checkpoint::diff(
      *a, *b, {.notes = {train::kAlgorithmsKey}, .progress = [&progress](std::int64_t more) {
                 progress.advance(more);
               }});
  progress.finish();
  if (!found) return base::fail(unreadable(found.error()));
  session.print_json(difference_json(*a, *b, *found));
  session.print(fmt::format("A {}\nB {}\n", a->folder().string(), b->folder().string()));
  print_difference(session, *found);
  const std::string compared = fmt::format("{} tensors, {}", base::grouped(found->compared_tensors),
                                           base::to_text(base::Bytes(found->compared_bytes)));
  session.print(found->equal() ? fmt::format("bitwise equal: state and {}\n", compared)
                               : fmt::format("{} of {} differ, and {} in the state\n",
                                             found->tensors.size(), compared, found->state.size()));
  return found->equal() ? ExitCode::kYes : ExitCode::kNo;
}

}  // namespace

Verb checkpoint_diff_verb(const Session& session) {
  const auto options = std::make_shared<CheckpointDiffOptions>();
  const char* help = "a checkpoint, or a folder of checkpoints or of a run: its newest";
  return {.name = "diff",
          .description = "compare two checkpoints tensor by tensor, whichever layouts wrote them",
          .examples = {"assay checkpoint diff checkpoints/step-2000 checkpoints",
                       "assay checkpoint diff checkpoints/step-2000 checkpoints/step-2000 --json"},
          .arguments = {{"A", help, &options->a, true, {}, true},
                        {"B", help, &options->b, true, {}, true}},
          .action = [&session, options] { return compare_checkpoints(session, *options); }};
}

}  // namespace assay::cli
