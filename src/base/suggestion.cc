#include "base/suggestion.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "base/utf8.h"

namespace assay::base {
namespace {

constexpr std::size_t kFewCandidates = 8;
constexpr std::size_t kShortestPrefix = 3;

std::u32string characters(std::string_view text) {
  std::u32string decoded;
  while (!text.empty()) {
    const Utf8Char c = first_utf8_char(text);
    // Surrogates never come out of valid text, so an invalid byte equals only itself.
    decoded += c.valid ? c.code_point : 0xDC00 + c.code_point;
    text.remove_prefix(c.size);
  }
  return decoded;
}

std::u32string lower(std::u32string text) {
  for (char32_t& c : text) {
    if (c >= U'A' && c <= U'Z') c += U'a' - U'A';
  }
  return text;
}

// The smallest number of single-character insertions, deletions, substitutions and adjacent swaps
// that turn a into b (optimal string alignment): Levenshtein's table plus the swaps, keeping three
// rows of it.
std::size_t distance(std::u32string_view a, std::u32string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> previous(b.size() + 1);
  std::vector<std::size_t> current(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) current[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, previous);
    std::swap(previous, current);
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, substituted});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) current[j] = std::min(current[j], before[j - 2] + 1);
    }
  }
  return current[b.size()];
}

// Lower is nearer. An abbreviation or a missing section name is as plain a slip as a typo, so the
// ways of being near are ranked and then measured.
enum class Kind { kSameButCase, kSameLastPart, kTypo, kPrefix };
struct Nearness {
  Kind kind;
  std::size_t measure;  // edits, or the length of what a prefix stands for
  std::size_t exact_distance;
  auto operator<=>(const Nearness&) const = default;
};

std::optional<Nearness> nearness(const std::u32string& name, const std::u32string& candidate) {
  const std::u32string folded_name = lower(name);
  const std::u32string folded = lower(candidate);
  const std::size_t allowed = std::max<std::size_t>(1, name.size() / 3);
  const std::size_t longer = std::max(name.size(), candidate.size());
  const bool comparable = longer - std::min(name.size(), candidate.size()) <= allowed;
  // The cheap test on lengths first: a name can be a megabyte of junk.
  const std::size_t edits = comparable ? distance(folded_name, folded) : longer;
  const auto near = [&](Kind kind, std::size_t measure) {
    return Nearness{kind, measure, comparable ? distance(name, candidate) : longer};
  };

  if (!name.empty() && edits == 0) return near(Kind::kSameButCase, 0);
  const std::size_t dot = folded.rfind(U'.');
  if (!name.empty() && dot != std::u32string::npos && folded.substr(dot + 1) == folded_name) {
    return near(Kind::kSameLastPart, candidate.size());
  }
  // "x" is one edit away from every one-letter name, which is no similarity: something must be
  // shared.
  if (edits <= allowed && edits < longer) return near(Kind::kTypo, edits);
  if (name.size() >= kShortestPrefix && folded.starts_with(folded_name)) {
    return near(Kind::kPrefix, candidate.size());
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> nearest(std::string_view name, std::span<const std::string> candidates) {
  const std::u32string decoded = characters(name);
  const std::string* best = nullptr;
  std::optional<Nearness> best_nearness;
  for (const std::string& candidate : candidates) {
    if (candidate == name) return std::nullopt;
    const auto found = nearness(decoded, characters(candidate));
    if (!found) continue;
    // Ties go to the alphabet, so that the answer does not depend on the order of a map.
    if (best == nullptr || std::tie(*found, candidate) < std::tie(*best_nearness, *best)) {
      best = &candidate;
      best_nearness = found;
    }
  }
  return best != nullptr ? std::optional(*best) : std::nullopt;
}

std::string suggestion(std::string_view name, std::span<const std::string> candidates) {
  if (const auto meant = nearest(name, candidates)) return "did you mean '" + *meant + "'?";
  if (std::find(candidates.begin(), candidates.end(), name) != candidates.end()) return {};
  if (candidates.empty() || candidates.size() > kFewCandidates) return {};
  if (candidates.size() == 1) return "expected '" + candidates.front() + "'";
  std::string text = "expected one of: ";
  for (const std::string& candidate : candidates) {
    if (&candidate != &candidates.front()) text += ", ";
    text += candidate;
  }
  return text;
}

}  // namespace assay::base
