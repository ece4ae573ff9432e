#include "train/cuda/tuning.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "base/error.h"

namespace assay::train::cuda {
namespace {

constexpr const char* kFirstWord = "assay-products-3";

}  // namespace

base::Result<void> Tuning::open(std::string file, std::string machine) {
  file_ = std::move(file);
  machine_ = fmt::format("{} {}", kFirstWord, machine);
  read_again();
  return {};
}

void Tuning::read_again() {
  if (file_.empty()) return;
  std::ifstream stream(file_);
  std::string line;
  if (!std::getline(stream, line) || line != machine_) return;
  while (std::getline(stream, line)) {
    if (parse(line)) continue;
    algorithms_.clear();  // damaged: timing again costs seconds, using it could give wrong results
    break;
  }
}

bool Tuning::parse(const std::string& line) {
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
  algorithms_[key] = algorithm;
  return true;
}

const cublasLtMatmulAlgo_t* Tuning::find(const ProductKey& key) const {
  const auto found = algorithms_.find(key);
  return found == algorithms_.end() ? nullptr : &found->second;
}

void Tuning::add(const ProductKey& key, const cublasLtMatmulAlgo_t& algorithm) {
  algorithms_[key] = algorithm;
  changed_ = true;
}

base::Result<void> Tuning::save() {
  if (file_.empty() || !changed_) return {};
  std::string text = machine_ + "\n";
  for (const auto& [key, algorithm] : algorithms_) {
    for (const std::int64_t part : key) text += fmt::format("{} ", part);
    for (const auto word : algorithm.data) text += fmt::format("{:x} ", word);
    text.back() = '\n';
  }
  const std::string beside = fmt::format("{}.{}.{}.new", file_, ::getpid(), fmt::ptr(this));
  errno = 0;
  std::ofstream stream(beside, std::ios::binary | std::ios::trunc);
  stream << text;
  stream.close();
  if (!stream || std::rename(beside.c_str(), file_.c_str()) != 0) {
    return base::fail(base::system_error(file_, "the tuning results cannot be saved", errno));
  }
  changed_ = false;
  return {};
}

}  // namespace assay::train::cuda
