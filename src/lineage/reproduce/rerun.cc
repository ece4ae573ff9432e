#include "lineage/reproduce/rerun.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <string_view>

#include "base/text.h"

namespace assay::lineage {
namespace {

// "lr" for "--lr", "-lr" and "lr"; underscores for dashes, as most programs accept both.
std::string key_of(std::string_view word) {
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  std::string key(word);
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

bool is_number(std::string_view word) {
  return word.size() > 1 &&
         (std::isdigit(static_cast<unsigned char>(word[1])) != 0 || word[1] == '.');
}

// "-n", "--steps"; not "-", "--", "-1" or "-.5".
bool is_option(std::string_view word) {
  return word.size() > 1 && word.front() == '-' && word != "--" && !is_number(word);
}

// A place in the command that gives `key` a value.
struct ValuePlace {
  std::string key;
  std::size_t word = 0;  // the word that holds the value
  std::size_t from = 0;  // where in it the value starts
};

std::vector<ValuePlace> places_in(std::span<const std::string> words) {
  std::vector<ValuePlace> places;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::size_t equals = word.find('=');
    // An assignment is a name and a value: "a=b", not "=b", and not a whole sentence with an "=".
    const bool named = equals != std::string::npos && equals > 0 &&
                       word.substr(0, equals).find_first_of(" \t\n'\"(") == std::string::npos;
    if (named) {
      places.push_back({key_of(word.substr(0, equals)), i, equals + 1});
    } else if (is_option(word) && i + 1 < words.size() && !is_option(words[i + 1]) &&
               words[i + 1] != "--") {
      places.push_back({key_of(word), i + 1, 0});
    }
  }
  return places;
}

base::Error no_such_key(const std::string& key, const std::vector<ValuePlace>& places) {
  std::set<std::string> known;
  for (const ValuePlace& place : places) known.insert(place.key);
  const std::vector<std::string> names(known.begin(), known.end());
  const std::string where = fmt::format("--set {}", key);
  if (names.empty()) {
    return base::usage_error(where, "the stage's command gives no names values",
                             "run the changed command itself: assay run -- …");
  }
  return base::usage_error(where, fmt::format("the stage's command gives no value to '{}'", key),
                           fmt::format("it does to: {}", fmt::join(names, ", ")));
}

}  // namespace

base::Result<std::vector<std::string>> rerun_words(std::span<const std::string> words,
                                                   std::span<const std::string> sets) {
  std::vector<std::string> changed(words.begin(), words.end());
  const std::vector<ValuePlace> places = places_in(words);
  for (const std::string& set : sets) {
    const std::size_t equals = set.find('=');
    if (equals == std::string::npos || equals == 0) {
      return base::fail(base::usage_error(fmt::format("--set {}", set), "is not KEY=VALUE",
                                          "for example --set lr=0.1"));
    }
    const std::string key = key_of(set.substr(0, equals));
    bool found = false;
    for (const ValuePlace& place : places) {
      if (place.key != key) continue;
      // Not the word as it is now: an earlier --set of the same key may have changed it.
      changed[place.word] = words[place.word].substr(0, place.from) + set.substr(equals + 1);
      found = true;
    }
    if (!found) return base::fail(no_such_key(set.substr(0, equals), places));
  }
  return changed;
}

}  // namespace assay::lineage
