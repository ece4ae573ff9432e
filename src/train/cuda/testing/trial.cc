#include "train/cuda/testing/trial.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <filesystem>

#include "train/cuda/cuda_backend.h"
#include "train/float_bits.h"
#include "train/init.h"
#include "train/testing/join_master.h"

namespace assay::train::cuda::testing {
namespace {

// A file of this process, removed when it ends.
const std::string& tuning_file() {
  struct File {
    std::string name =
        (std::filesystem::temp_directory_path() / ("assay-tuning-" + std::to_string(::getpid())))
            .string();
    ~File() {
      std::error_code ignored;
      std::filesystem::remove(name, ignored);
    }
  };
  static const File file;
  return file.name;
}

template <class T>
std::vector<T> read_as(Backend& backend, const step::View& view) {
  std::vector<T> values(static_cast<std::size_t>(view.elements()));
  const auto done = backend.read(view, std::as_writable_bytes(std::span(values)));
  EXPECT_TRUE(done.has_value()) << done.error().line();
  return values;
}

template <class T>
void write_as(Backend& backend, const step::View& view, const std::vector<T>& values) {
  const auto done = backend.write(view, std::as_bytes(std::span(values)));
  EXPECT_TRUE(done.has_value()) << done.error().line();
}

}  // namespace

namespace {

const spec::ModelSpec kLlama{.vocab = 1000,
                             .dim = 256,
                             .layers = 2,
                             .heads = 4,
                             .kv_heads = 2,
                             .head_dim = 64,
                             .ffn = 512,
                             .context = 512};

}  // namespace

std::vector<Variant> mixtures() {
  std::vector<Variant> list = spec::testing::mixture_shapes(kLlama);
  spec::ModelSpec many = kLlama;  // more than lanes in a warp, with few rows each
  many.experts = 40;
  many.experts_per_token = 6;
  many.expert_ffn = 64;
  list.push_back({"many experts", many});
  return list;
}

std::vector<Variant> with_mixtures() {
  std::vector<Variant> list = variants();
  for (const Variant& mixture : mixtures()) list.push_back(mixture);
  return list;
}

std::vector<Variant> variants() {
  const spec::ModelSpec& llama = kLlama;
  std::vector<Variant> list = spec::testing::model_shapes(llama);
  list.back().model.vocab = 1003;  // rows of logits end in the middle of a vector
  spec::ModelSpec wide = llama;
  wide.heads = 2;
  wide.kv_heads = 1;
  wide.head_dim = 128;
  list.push_back({"wide_heads", wide});
  return list;
}

std::unique_ptr<Backend> gpu_backend(bool deterministic_attention) {
  auto made = make_cuda_backend(
      {.deterministic_attention = deterministic_attention, .tuning_file = tuning_file()});
  return made ? std::move(*made) : nullptr;
}

Trial::Trial(std::unique_ptr<Backend> backend, const spec::ModelSpec& model, step::Choices choices)
    : backend_(std::move(backend)) {
  if (choices.sequence == 0) choices.sequence = 256;
  if (choices.micro_batch == 1) choices.micro_batch = 2;
  program_ = *step::build(model, choices);
  plan_ = step::plan_memory(program_);
  const auto prepared = backend_->prepare(program_, plan_);
  EXPECT_TRUE(prepared.has_value()) << prepared.error().line();
  for (const step::Parameter& p : program_.parameters) {
    std::vector<float> values(static_cast<std::size_t>(p.elements()));
    step::Parameter wild = p;  // large values, so that everything has an effect
    wild.init_std = 0.06;
    initial_values(wild, 7, 0, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (p.init != step::Init::kNormal) {
        values[i] += 0.2F * std::sin(static_cast<float>(i * 7 + p.name.size()));
      }
      values[i] = join_master({split_master(values[i]).high, 0});
    }
    set(p, values);
  }
}

void Trial::set(const step::Parameter& p, const std::vector<float>& values) {
  const step::View place = program_.weight(p);
  if (program_.choices.numerics.weights == step::Dtype::kF32) {
    return write_as(*backend_, place, values);
  }
  std::vector<std::uint16_t> high;
  std::vector<std::uint16_t> low;
  for (const float value : values) {
    high.push_back(split_master(value).high);
    low.push_back(split_master(value).low);
  }
  write_as(*backend_, place, high);
  step::View remainder = place;
  remainder.buffer = program_.unit_of(p).remainders;
  if (remainder.buffer >= 0) write_as(*backend_, remainder, low);
}

std::int32_t Trial::token(std::int32_t micro, std::size_t i) const {
  const auto vocab = static_cast<std::size_t>(program_.model.vocab);
  return static_cast<std::int32_t>((i * i * 31 + i * 17 + static_cast<std::size_t>(micro) * 5) %
                                   vocab);
}

bool Trial::begins_document(std::size_t i) const {
  if (!program_.choices.document_mask) return false;
  // Some longer than the blocks of keys that attention takes, some of one token.
  const std::size_t at = i % 307;
  return at == 0 || at == 1 || at == 40 || at == 170;
}

std::int32_t Trial::target(std::int32_t micro, std::size_t i) const {
  return i == 4 || begins_document(i + 1) ? -1 : token(micro, i + 1);
}

Scalars Trial::step(StepSettings settings) {
  settings.counted_targets = 0;
  for (std::int32_t micro = 0; micro < program_.choices.accumulate; ++micro) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(program_.micro_tokens()); ++i) {
      settings.counted_targets += target(micro, i) < 0 ? 0 : 1;
    }
  }
  if (settings.z_loss == 0) settings.z_loss = 1e-3;
  settings.balance_loss = 0.05;
  settings.router_z_loss = 0.02;
  settings.balance_rate = 1e-3;
  auto scalars = run_step(
      *backend_, program_, settings,
      [&](std::int32_t micro, auto tokens, auto targets) {
        for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = token(micro, i);
        for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = target(micro, i);
        return base::Result<void>{};
      },
      [&](std::int32_t, auto documents) {
        const auto sequence = static_cast<std::size_t>(program_.choices.sequence);
        std::size_t begin = 0;
        for (std::size_t i = 0; i < documents.size(); ++i) {
          if (i % sequence == 0 || begins_document(i)) begin = i % sequence;
          documents[i] = static_cast<std::int32_t>(begin);
        }
        return base::Result<void>{};
      });
  EXPECT_TRUE(scalars.has_value()) << scalars.error().line();
  return scalars.value_or(Scalars{});
}

std::vector<float> Trial::get(const step::View& view) {
  const step::Buffer& buffer = program_.buffers[static_cast<std::size_t>(view.buffer)];
  if (buffer.type == step::Dtype::kF32) return read_as<float>(*backend_, view);
  std::vector<float> values;
  for (const std::uint16_t half : bits(view)) values.push_back(join_master({half, 0}));
  return values;
}

std::vector<std::uint16_t> Trial::bits(const step::View& view) {
  return read_as<std::uint16_t>(*backend_, view);
}

void Trial::set_bits(const step::View& view, const std::vector<std::uint16_t>& bits) {
  write_as(*backend_, view, bits);
}

step::View Trial::whole(step::BufferId buffer) const {
  const std::int64_t elements = program_.buffers[static_cast<std::size_t>(buffer)].elements;
  return {buffer, 0, 1, elements, elements};
}

}  // namespace assay::train::cuda::testing
