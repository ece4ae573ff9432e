// Searches in the free text of rows. Each is linear in the
// text, or nearly so, and knows ASCII only.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace assay::plan {

std::string lower_case(std::string_view text);

bool contains(std::string_view text, std::string_view word);
bool contains_any(std::string_view text, std::initializer_list<std::string_view> words);

// Whether the text says so: the phrase in lower case, between other words, and neither denied by
// "no", "not" or "without" just before it nor switched off just behind it ("lora=false").
bool states(std::string_view text, std::string_view phrase);
std::optional<std::size_t> stated_at(std::string_view text, std::string_view phrase);
bool states_any(std::string_view text, std::initializer_list<std::string_view> phrases);

// Whether a column in lower case is a yes: "yes (userbuffers)", "true", "on", "1".
bool says_yes(std::string_view field);

// Of a source: its first two words, which sources of one project share.
std::string_view family_of(std::string_view source);

// Whether the text contains something like the pattern, in which ? stands for one character or none
// and * for any number of them.
bool contains_like(std::string_view text, std::string_view pattern);

// The whole number behind the first `key` that has one: "cp=4". With `word`, a key that ends a
// longer word does not count.
std::optional<double> number_after(std::string_view text, std::string_view key, bool word);

// The whole number in front of the first `unit` that has one: "128 vcpu".
std::optional<double> number_before(std::string_view text, std::string_view unit);

// "500 W" in lower case.
std::optional<double> watts_in(std::string_view text);

// "16 experts top-2", "8e-top2" in lower case.
struct ExpertsText {
  double experts = 1;
  double per_token = 1;
};
std::optional<ExpertsText> experts_in(std::string_view text);

// Parameters by a name in lower case: "llama-7b".
std::optional<double> parameters_in(std::string_view text);

}  // namespace assay::plan
