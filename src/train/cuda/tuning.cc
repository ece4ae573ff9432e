#include "train/cuda/tuning.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

#include "base/embedded_file.h"
#include "base/error.h"
#include "base/file.h"
#include "base/unique_fd.h"

namespace assay::train::cuda {

std::span<const base::EmbeddedFile> embedded_files();  // tuned/

namespace {

constexpr std::string_view kFirstWord = "assay-products-4 ";
constexpr base::Bytes kMostBytes(std::int64_t{64} << 20U);

struct Section {
  std::string machine;
  std::vector<std::string> lines;
};

// Splits a text into the sections of its machines. A text that does not begin with a machine, as in
// earlier versions, has none.
std::vector<Section> sections_of(std::string_view text) {
  std::vector<Section> list;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with('#')) continue;
    if (line.starts_with(kFirstWord)) {
      list.push_back({line.substr(kFirstWord.size()), {}});
    } else if (list.empty()) {
      return {};
    } else {
      list.back().lines.push_back(line);
    }
  }
  return list;
}

bool parse(const std::string& line, ProductAlgorithms& to) {
  std::istringstream words(line);
  ProductKey key{};
  for (std::int64_t& part : key) {
    if (!(words >> part)) return false;
  }
  cublasLtMatmulAlgo_t algorithm{};
  for (auto& word : algorithm.data) {
    std::uint64_t value = 0;
    if (!(words >> std::hex >> value)) return false;
    word = value;
  }
  std::string rest;
  if (words >> rest) return false;
  to[key] = algorithm;
  return true;
}

// Nothing if a line is damaged: timing again costs seconds, but a damaged algorithm could give
// wrong results.
std::optional<ProductAlgorithms> algorithms_of(const std::vector<Section>& sections,
                                               const std::string& machine) {
  ProductAlgorithms all;
  for (const Section& section : sections) {
    if (section.machine != machine) continue;
    for (const std::string& line : section.lines) {
      if (!parse(line, all)) return std::nullopt;
    }
  }
  return all;
}

std::string text_of_machine(const std::string& machine, const ProductAlgorithms& algorithms) {
  std::string text = fmt::format("{}{}\n", kFirstWord, machine);
  for (const auto& [key, algorithm] : algorithms) {
    for (const std::int64_t part : key) text += fmt::format("{} ", part);
    for (const auto word : algorithm.data) text += fmt::format("{:x} ", word);
    text.back() = '\n';
  }
  return text;
}

// One process at a time, so that none loses what another adds. Gives up if another process holds
// the lock for seconds, or if the file system has no locks: something may then be lost, and is
// timed again.
base::UniqueFd lock_beside(const std::string& file) {
  base::UniqueFd fd(::open((file + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  constexpr int kTries = 100;
  for (int i = 0; i < kTries && fd.valid() && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0; ++i) {
    if (errno != EWOULDBLOCK && errno != EINTR) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return fd;
}

std::vector<Section> read_sections(const std::string& file) {
  const auto text = base::read_file(file, kMostBytes);
  return text ? sections_of(*text) : std::vector<Section>{};
}

}  // namespace

void Tuning::open(std::string file, std::string machine) {
  file_ = std::move(file);
  machine_ = std::move(machine);
  for (const base::EmbeddedFile& table : embedded_files()) {
    if (const auto found = algorithms_of(sections_of(table.contents), machine_)) {
      for (const auto& [key, algorithm] : *found) known_[key] = algorithm;
    }
  }
  read_again();
}

void Tuning::read_again() {
  if (file_.empty()) return;
  if (const auto found = algorithms_of(read_sections(file_), machine_)) {
    for (const auto& [key, algorithm] : *found) known_[key] = algorithm;
  }
}

const cublasLtMatmulAlgo_t* Tuning::find(const ProductKey& key) const {
  for (const ProductAlgorithms* list : {&adopted_, &known_}) {
    const auto found = list->find(key);
    if (found != list->end()) return &found->second;
  }
  return nullptr;
}

void Tuning::add(const ProductKey& key, const cublasLtMatmulAlgo_t& algorithm) {
  known_[key] = algorithm;
  found_[key] = algorithm;
}

base::Result<void> Tuning::save() {
  if (file_.empty() || found_.empty()) return {};
  const base::UniqueFd lock = lock_beside(file_);
  const std::vector<Section> there = read_sections(file_);
  std::string text;
  for (const Section& section : there) {
    if (section.machine == machine_) continue;
    text += fmt::format("{}{}\n", kFirstWord, section.machine);
    for (const std::string& line : section.lines) text += line + "\n";
  }
  ProductAlgorithms all = algorithms_of(there, machine_).value_or(ProductAlgorithms{});
  for (const auto& [key, algorithm] : found_) all[key] = algorithm;
  text += text_of_machine(machine_, all);
  found_.clear();  // even on failure: a failed write is not retried at every step
  return base::replace_file(file_, text);
}

std::string Tuning::text_of(const ProductAlgorithms& algorithms) const {
  return text_of_machine(machine_, algorithms);
}

bool Tuning::adopt(std::string_view text) {
  auto found = algorithms_of(sections_of(text), machine_);
  if (!found || found->empty()) return false;
  adopted_ = *std::move(found);
  return true;
}

}  // namespace assay::train::cuda
