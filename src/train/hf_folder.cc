#include "train/hf_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "train/checkpoint/safetensors_file.h"
#include "train/float_bits.h"
#include "train/hf_names.h"

namespace assay::train {
namespace {

namespace fs = std::filesystem;

constexpr base::Bytes kMostIndexBytes(64 << 20);

// The published files of GPT-2 have no prefix.
std::string_view published_name(std::string_view name) {
  constexpr std::string_view kPrefix = "transformer.";
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
}

// Tensors that can be computed: rotary frequencies and GPT-2's causal masks, written by older
// versions of transformers.
bool is_computed(std::string_view name) {
  return name.ends_with(".rotary_emb.inv_freq") || name.ends_with(".attn.bias") ||
         name.ends_with(".attn.masked_bias");
}

constexpr const char* kHead = "lm_head.weight";
constexpr const char* kOtherModel = "config.json describes another model than the files";

// Only the files in the index: some folders have the same weights in other files, too.
base::Result<std::vector<fs::path>> files_of_index(const fs::path& index) {
  ASSAY_TRY(const std::string text, base::read_file(index, kMostIndexBytes));
  const base::Json json = base::Json::parse(text, nullptr, false);
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (!json.is_object() || map == json.end() || !map->is_object()) {
    return base::fail(base::usage_error(index.string(), "has no weight_map"));
  }
  std::set<std::string> names;
  for (const base::Json& file : *map) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    if (name.empty() || fs::path(name).filename() != name) {
      return base::fail(base::usage_error(index.string(), "names a file outside its folder"));
    }
    names.insert(name);
  }
  std::vector<fs::path> paths;
  for (const std::string& name : names) {
    std::error_code ignored;
    paths.push_back(index.parent_path() / name);
    if (fs::exists(paths.back(), ignored)) continue;
    return base::fail(base::usage_error(
        index.string(), fmt::format("names {}, which is not there", name), "download it as well"));
  }
  return paths;
}

base::Result<std::vector<fs::path>> weight_files(const fs::path& folder) {
  std::error_code error;
  const fs::path index = folder / "model.safetensors.index.json";
  if (fs::exists(index, error)) return files_of_index(index);
  if (fs::exists(folder / "model.safetensors", error))
    return std::vector{folder / "model.safetensors"};
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".safetensors") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  if (!paths.empty()) return paths;
  return base::fail(base::usage_error(folder.string(), "has no *.safetensors files",
                                      "convert the model to safetensors first"));
}

// The tensors of a folder, across its files.
class HfFolder {
 public:
  static base::Result<HfFolder> open(const fs::path& folder) {
    HfFolder result(folder.string());
    ASSAY_TRY(const std::vector<fs::path> paths, weight_files(folder));
    for (const fs::path& path : paths) {
      ASSAY_TRY(checkpoint::SafetensorsFile file, checkpoint::SafetensorsFile::open(path));
      result.files_.push_back(std::move(file));
    }
    for (std::size_t i = 0; i < paths.size(); ++i) {
      for (const checkpoint::TensorPlace& place : result.files_[i].header().tensors) {
        const auto [other, is_new] = result.places_.emplace(published_name(place.info.name),
                                                            Place{&result.files_[i], &place, i});
        if (is_new) continue;
        return base::fail(
            base::usage_error(result.where_,
                              fmt::format("{} is in {} and in {}", place.info.name,
                                          paths[other->second.file_index].filename().string(),
                                          paths[i].filename().string()),
                              "keep the files of one model only"));
      }
    }
    return result;
  }

  // Called before tensors are listed, because a config may claim more of them than fit into memory.
  [[nodiscard]] base::Result<void> check_enough(const spec::ModelSpec& model) const {
    const double experts =
        static_cast<double>(model.moe_layers()) * static_cast<double>(model.experts);
    if (static_cast<double>(model.layers) + experts <= static_cast<double>(places_.size())) {
      return {};
    }
    const std::string mixtures =
        model.is_moe() ? fmt::format(" with {} experts", model.experts) : "";
    return base::fail(base::usage_error(
        where_, fmt::format("has {} tensors, but config.json describes {} layers{}", places_.size(),
                            model.layers, mixtures)));
  }

  // Every tensor of the model must be there, in a type of weights, and no other: that would be
  // lost, for example biases that the config does not mention.
  [[nodiscard]] base::Result<void> check(const std::vector<HfTensor>& wanted, bool tied) const {
    std::set<std::string_view> known;
    for (const HfTensor& tensor : wanted) {
      ASSAY_TRY_VOID(check_tensor(tensor));
      known.insert(published_name(tensor.name));
    }
    for (const auto& [name, place] : places_) {
      if (known.contains(name) || is_computed(name) || (tied && name == kHead)) continue;
      return base::fail(base::usage_error(
          where_, fmt::format("{} belongs to no part of the model", place.tensor->info.name),
          kOtherModel));
    }
    return {};
  }

  // A head that is stored although the embedding is used in its place must be equal to it.
  [[nodiscard]] base::Result<void> check_head(const HfTensor& embedding) const {
    const Place* head = find(kHead);
    if (head == nullptr) return {};
    const Place* other = find(embedding.name);
    ASSAY_TRY(const bool equal, are_equal(*head, *other));
    if (equal) return {};
    return base::fail(base::usage_error(
        where_,
        fmt::format("{} differs from {}, but config.json has tie_word_embeddings: true", kHead,
                    other->tensor->info.name),
        fmt::format("false keeps the head; without {} the embedding is the head", kHead)));
  }

  // The type that holds the tensor exactly and that models are trained from.
  [[nodiscard]] checkpoint::TensorDtype type_of(const HfTensor& tensor) const {
    const checkpoint::TensorDtype stored = find(tensor.name)->tensor->info.dtype;
    return stored == checkpoint::TensorDtype::kBf16 ? stored : checkpoint::TensorDtype::kF32;
  }

  [[nodiscard]] base::Result<std::vector<std::byte>> read(const HfTensor& tensor,
                                                          checkpoint::TensorDtype as) const {
    const Place& place = *find(tensor.name);
    std::vector<std::byte> bytes(static_cast<std::size_t>(place.tensor->bytes()));
    ASSAY_TRY_VOID(place.file->read(*place.tensor, 0, bytes));
    if (place.tensor->info.dtype != as) {
      ASSAY_TRY(const std::vector<float> values, to_floats(bytes, place.tensor->info.dtype));
      const auto wide = std::as_bytes(std::span(values));
      bytes.assign(wide.begin(), wide.end());
    }
    if (!tensor.transposed) return bytes;
    return transposed(bytes, tensor.cols, tensor.count,
                      static_cast<std::size_t>(checkpoint::dtype_bytes(as)));
  }

 private:
  struct Place {
    const checkpoint::SafetensorsFile* file;
    const checkpoint::TensorPlace* tensor;
    std::size_t file_index;
  };

  explicit HfFolder(std::string where) : where_(std::move(where)) {}

  // Null if there is no such tensor.
  [[nodiscard]] const Place* find(std::string_view name) const {
    const auto found = places_.find(published_name(name));
    return found == places_.end() ? nullptr : &found->second;
  }

  [[nodiscard]] base::Result<void> check_tensor(const HfTensor& tensor) const {
    const Place* place = find(tensor.name);
    if (place == nullptr) {
      return base::fail(base::usage_error(
          where_, fmt::format("{} is missing", tensor.name),
          tensor.name == kHead ? "with tie_word_embeddings: true the embedding is the head"
                               : kOtherModel));
    }
    const checkpoint::TensorInfo& info = place->tensor->info;
    if (info.shape != tensor.shape()) {
      return base::fail(
          base::usage_error(where_,
                            fmt::format("{} has the shape {}, expected {}", tensor.name,
                                        fmt::join(info.shape, "x"), fmt::join(tensor.shape(), "x")),
                            kOtherModel));
    }
    if (are_weights(info.dtype)) return {};
    return base::fail(base::usage_error(
        where_, fmt::format("{} is stored as {}", tensor.name, checkpoint::dtype_name(info.dtype)),
        "convert the model to bf16, fp16 or fp32 first"));
  }

  [[nodiscard]] static base::Result<bool> are_equal(const Place& a, const Place& b) {
    if (a.tensor->info.dtype != b.tensor->info.dtype ||
        a.tensor->info.shape != b.tensor->info.shape) {
      return false;
    }
    constexpr std::int64_t kChunk = std::int64_t{4} << 20;
    std::vector<std::byte> of_a;
    std::vector<std::byte> of_b;
    for (std::int64_t at = 0; at < a.tensor->bytes(); at += kChunk) {
      of_a.resize(static_cast<std::size_t>(std::min(kChunk, a.tensor->bytes() - at)));
      of_b.resize(of_a.size());
      ASSAY_TRY_VOID(a.file->read(*a.tensor, at, of_a));
      ASSAY_TRY_VOID(b.file->read(*b.tensor, at, of_b));
      if (of_a != of_b) return false;
    }
    return true;
  }

  std::string where_;
  std::deque<checkpoint::SafetensorsFile> files_;     // places point to them
  std::map<std::string, Place, std::less<>> places_;  // by the published names
};

// The tensors that make up one parameter, joined.
base::Result<checkpoint::Tensor> read_parameter(const HfFolder& files,
                                                std::span<const HfTensor> pieces) {
  checkpoint::TensorDtype type = checkpoint::TensorDtype::kBf16;
  for (const HfTensor& piece : pieces) {
    if (files.type_of(piece) != type) type = checkpoint::TensorDtype::kF32;
  }
  std::vector<std::byte> joined;
  for (const HfTensor& piece : pieces) {
    ASSAY_TRY(std::vector<std::byte> bytes, files.read(piece, type));
    if (joined.empty()) {
      joined = std::move(bytes);
    } else {
      joined.insert(joined.end(), bytes.begin(), bytes.end());
    }
  }
  const HfTensor& last = pieces.back();
  const std::int64_t rows = last.first + last.count;
  const auto shape = last.vector ? std::vector{rows * last.cols} : std::vector{rows, last.cols};
  return checkpoint::owned_tensor({last.parameter, type, shape}, std::move(joined));
}

}  // namespace

std::vector<std::byte> transposed(std::span<const std::byte> from, std::int64_t rows,
                                  std::int64_t cols, std::size_t size) {
  std::vector<std::byte> to(from.size());
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < cols; ++j) {
      std::memcpy(to.data() + static_cast<std::size_t>(j * rows + i) * size,
                  from.data() + static_cast<std::size_t>(i * cols + j) * size, size);
    }
  }
  return to;
}

base::Result<std::vector<checkpoint::Tensor>> read_hf_parameters(const fs::path& folder,
                                                                 const spec::ModelSpec& model) {
  ASSAY_TRY(const HfFolder files, HfFolder::open(folder));
  ASSAY_TRY_VOID(files.check_enough(model));
  ASSAY_TRY(const std::vector<HfTensor> wanted, hf_tensors(model));
  ASSAY_TRY_VOID(files.check(wanted, model.tied));
  if (model.tied) {
    ASSAY_TRY_VOID(files.check_head(*std::ranges::find(wanted, "embedding", &HfTensor::parameter)));
  }
  std::vector<checkpoint::Tensor> parameters;
  for (std::size_t first = 0; first < wanted.size();) {  // those of one parameter are consecutive
    std::size_t end = first + 1;
    while (end < wanted.size() && wanted[end].parameter == wanted[first].parameter) ++end;
    ASSAY_TRY(checkpoint::Tensor parameter,
              read_parameter(files, std::span(wanted).subspan(first, end - first)));
    parameters.push_back(std::move(parameter));
    first = end;
  }
  return parameters;
}

}  // namespace assay::train
