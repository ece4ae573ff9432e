#include "suite/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/suggestion.h"
#include "base/text.h"
#include "suite/read_suite.h"

namespace assay::suite {
namespace {

constexpr std::string_view kExtension = ".toml";
constexpr base::Bytes kLargestSuite(1 << 20);

std::string name_of_file(std::string_view file) {
  file.remove_suffix(kExtension.size());
  return std::string(file);
}

}  // namespace

std::vector<std::string> suite_names() {
  std::vector<std::string> names;
  for (const base::EmbeddedFile& file : embedded_files()) names.push_back(name_of_file(file.path));
  return names;
}

base::Result<Suite> find_suite(const std::string& reference) {
  if (reference.find('/') != std::string::npos || reference.ends_with(kExtension)) {
    ASSAY_TRY(const std::string text,
              base::read_file(reference, kLargestSuite, base::Pipes::kRead));
    return read_suite(text, reference);
  }
  for (const base::EmbeddedFile& file : embedded_files()) {
    if (name_of_file(file.path) != reference) continue;
    return read_suite(std::string(file.contents), "bench/suites/" + std::string(file.path));
  }
  const std::vector<std::string> names = suite_names();
  return base::fail(base::usage_error("bench", fmt::format("unknown suite '{}'", reference),
                                      base::suggestion(reference, names)));
}

}  // namespace assay::suite
