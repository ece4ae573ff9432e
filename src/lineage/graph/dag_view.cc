#include "lineage/graph/dag_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <tuple>

#include "base/text.h"
#include "base/units.h"

namespace assay::lineage {
namespace {

std::vector<Bundle> bundles_of(const Dag& dag) {
  std::map<std::pair<std::size_t, std::size_t>, const DagInput*> inputs;  // (file, run)
  for (std::size_t run = 0; run < dag.runs.size(); ++run) {
    for (const DagInput& input : dag.runs[run].inputs) inputs[{input.file, run}] = &input;
  }
  using Key = std::tuple<std::optional<std::size_t>, std::vector<std::size_t>, std::vector<bool>,
                         std::vector<bool>, bool, bool, std::string,
                         std::optional<std::pair<store::RunId, std::string>>>;
  std::map<Key, std::size_t> known;
  std::vector<Bundle> bundles;
  for (std::size_t file = 0; file < dag.files.size(); ++file) {
    const DagFile& one = dag.files[file];
    std::vector<std::size_t> consumers = one.consumers;
    std::sort(consumers.begin(), consumers.end());
    std::vector<bool> old, into;
    for (const std::size_t run : consumers) {
      const DagInput& input = *inputs.at({file, run});
      old.push_back(input.stale);
      into.push_back(input.written_into);
    }
    // The subject, and files with a remark, get separate bundles.
    std::optional<std::pair<store::RunId, std::string>> same_content;
    if (one.same_content) same_content.emplace(one.same_content->run, one.same_content->path);
    const auto [at, is_new] =
        known.try_emplace({one.producer, consumers, old, into, one.deleted, is_subject(dag, file),
                           one.origin, std::move(same_content)},
                          bundles.size());
    if (is_new) {
      bundles.push_back({{}, one.producer, std::move(consumers), std::move(old), std::move(into)});
    }
    bundles[at->second].files.push_back(file);
  }
  for (Bundle& bundle : bundles) {
    std::sort(bundle.files.begin(), bundle.files.end(),
              [&](std::size_t a, std::size_t b) { return dag.files[a].path < dag.files[b].path; });
  }
  return bundles;
}

// Depth first, by run number, so that the order is the same every time.
std::vector<std::size_t> order_of(const Dag& dag) {
  enum class Mark : char { kNew, kOpen, kDone };
  std::vector<std::size_t> order;
  std::vector<Mark> marks(dag.runs.size(), Mark::kNew);
  std::vector<std::size_t> roots(dag.runs.size());
  for (std::size_t i = 0; i < roots.size(); ++i) roots[i] = i;
  std::sort(roots.begin(), roots.end(), [&](std::size_t a, std::size_t b) {
    const auto key = [&](std::size_t i) {
      const store::RunRecord& run = dag.runs[i].run;
      return std::pair(run.superseded || run.stage == 0 ? run.id : run.stage, run.id);
    };
    return key(a) < key(b);
  });
  // Not recursive: a project may have a chain of a hundred thousand runs.
  std::vector<std::pair<std::size_t, std::size_t>> stack;  // run, next input
  for (const std::size_t root : roots) {
    if (marks[root] != Mark::kNew) continue;
    stack.push_back({root, 0});
    marks[root] = Mark::kOpen;
    while (!stack.empty()) {
      auto& [run, next] = stack.back();
      const auto& inputs = dag.runs[run].inputs;
      if (next == inputs.size()) {
        marks[run] = Mark::kDone;
        order.push_back(run);
        stack.pop_back();
        continue;
      }
      const auto producer = dag.files[inputs[next++].file].producer;
      if (producer && marks[*producer] == Mark::kNew) {
        marks[*producer] = Mark::kOpen;
        stack.push_back({*producer, 0});
      }
    }
  }
  return order;
}

std::string quoted_words(std::span<const std::string> words) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += " ";
    text += base::shell_quoted(word);
  }
  return text;
}

}  // namespace

std::string shown_path(const std::string& path, const std::filesystem::path& directory) {
  const std::string prefix = directory == "/" ? "/" : directory.string() + "/";
  return path.starts_with(prefix) && path.size() > prefix.size() ? path.substr(prefix.size())
                                                                 : path;
}

std::string command_text(const store::RunRecord& run) {
  const std::vector<std::string>& words = run.command;
  const bool training = words.size() > 1 && words[1] == "train" &&
                        std::filesystem::path(words[0]).filename() == "assay-train";
  return training ? "assay " + quoted_words(std::span(words).subspan(1)) : quoted_words(words);
}

std::string recorded_command_text(const store::RunRecord& run) {
  return quoted_words(run.command);
}

std::string short_name(const store::RunRecord& run) {
  const bool live = run.stage != 0 && !run.superseded;
  return live ? fmt::format("@{}", run.stage) : fmt::format("run {}", run.id);
}

std::string DagView::label(const Bundle& bundle, std::size_t names) const {
  std::string text;
  const std::size_t count = bundle.files.size();
  // "and 1 more" would be as long as the name.
  const std::size_t listed = count <= names + 1 && names > 1 ? count : std::min(count, names);
  for (std::size_t i = 0; i < listed; ++i) {
    const DagFile& file = dag->files[bundle.files[i]];
    text += (i == 0 ? "" : ", ") + base::printable(shown_path(file.path, directory));
  }
  if (listed < count)
    text += fmt::format(" and {} more", base::grouped(static_cast<std::int64_t>(count - listed)));
  if (dag->files[bundle.files[0]].deleted) text += " (deleted)";
  return text;
}

std::string DagView::detail(const Bundle& bundle) const {
  std::int64_t size = 0;
  for (const std::size_t file : bundle.files)
    size += std::max<std::int64_t>(0, dag->files[file].size);
  const DagFile& first = dag->files[bundle.files[0]];
  if (first.deleted) return "deleted";
  if (first.size < 0 && first.blake3) return first.blake3->hex().substr(0, 8);
  const std::string bytes = base::to_text(base::Bytes(size));
  if (first.files > 0) return fmt::format("{} · {}", base::counted(first.files, "file"), bytes);
  if (bundle.files.size() > 1) return fmt::format("{} files · {}", bundle.files.size(), bytes);
  return fmt::format("{} · {}", first.blake3 ? first.blake3->hex().substr(0, 8) : "not hashed",
                     bytes);
}

std::string DagView::remark(const Bundle& bundle) const {
  const auto& same = dag->files[bundle.files[0]].same_content;
  if (!same) return "";
  return fmt::format("same content as {} of run {}",
                     base::printable(shown_path(same->path, directory)), same->run);
}

bool is_subject(const Dag& dag, std::size_t file) {
  if (!dag.file) return false;
  const DagFile& asked = dag.files[*dag.file];
  return dag.file == file ||
         (dag.files[file].path == asked.path && asked.blake3 == dag.files[file].blake3 &&
          asked.producer.has_value() && dag.files[file].producer.has_value());
}

DagView view_of(const Dag& dag, const std::filesystem::path& directory) {
  return {&dag, directory, bundles_of(dag), order_of(dag)};
}

}  // namespace assay::lineage
