#include "lineage/job_results.h"

#include <fmt/format.h>

#include "base/text.h"
#include "lineage/environment.h"

namespace assay::lineage {
namespace {

std::string line(std::string_view what, const std::string& path, const Rule& rule) {
  return fmt::format("{:<9} {}  ({}: {})", what, base::printable(path), rule.name, rule.sentence);
}

}  // namespace

void JobResults::keep(base::Result<void> written) {
  if (error_ && !written) error_ = std::move(written);
}

void JobResults::input(store::Input input, const Rule& rule) {
  ++inputs_;
  packages_.saw(input.path);
  if (explain_) explain_(line("input", input.path, rule));
  keep(writer_.add_input(input));
}

void JobResults::output(store::Output output, const Rule& rule) {
  ++outputs_;
  if (explain_) explain_(line("output", output.path, rule));
  keep(writer_.add_output(output));
}

void JobResults::left_out(LeftOut file, const Rule& rule) {
  if (file.read) packages_.saw(file.path);
  if (explain_) explain_(line("left out", file.path, rule));
}

void JobResults::process(store::Process process) {
  process.words = redacted_words(process.words);
  keep(writer_.add_process(process));
}

void JobResults::missed(store::Missed missed) {
  ++missed_;
  keep(writer_.add_missed(missed));
}

base::Result<void> JobResults::finish() {
  for (const store::Package& package : packages_.packages()) keep(writer_.add_package(package));
  return error_;
}

}  // namespace assay::lineage
