// The pre_tokenizer of a tokenizer.json: ByteLevel with its own pattern (GPT-2's), or a Split with
// a pattern of the file's and a ByteLevel without (Llama 3).
#include "train/data/tokenizer_json.h"
#include "train/data/word_splitter.h"

namespace assay::data {
namespace {

// Errors unless it is a ByteLevel that only spells bytes, and with or without the pattern as asked.
base::Result<void> check_byte_level(const JsonNode& step, bool with_pattern,
                                    const std::string& where) {
  if (json_member(step, "type") != "ByteLevel") return unsupported(where, "pre_tokenizer", step);
  // A space that was not in the text could not be told from one that was.
  if (json_member(step, "add_prefix_space") == true) {
    return unsupported(where, "pre_tokenizer ByteLevel add_prefix_space",
                       json_member(step, "add_prefix_space"));
  }
  const JsonNode& use_regex = json_member(step, "use_regex");
  const bool uses = use_regex.is_null() || use_regex == true;  // absent in files of its first years
  if (uses != with_pattern) {
    return unsupported(where, "pre_tokenizer ByteLevel use_regex", use_regex);
  }
  return {};
}

base::Result<std::string> pattern_of_split(const JsonNode& step, const std::string& where) {
  if (json_member(step, "type") != "Split") return unsupported(where, "pre_tokenizer", step);
  const JsonNode& behavior = json_member(step, "behavior");
  if (behavior != "Isolated") {
    return unsupported(where, "pre_tokenizer Split behavior", behavior);
  }
  if (json_member(step, "invert") == true) {
    return unsupported(where, "pre_tokenizer Split invert", json_member(step, "invert"));
  }
  const JsonNode& pattern = json_member(step, "pattern");
  const JsonNode& regex = json_member(pattern, "Regex");
  if (!regex.is_string()) return unsupported(where, "pre_tokenizer Split pattern", pattern);
  return regex.get<std::string>();
}

}  // namespace

base::Result<std::string> pattern_of(const JsonNode& pre_tokenizer, const std::string& where) {
  if (json_member(pre_tokenizer, "type") != "Sequence") {
    ASSAY_TRY_VOID(check_byte_level(pre_tokenizer, true, where));
    return split_pattern("gpt2");
  }
  const JsonNode& steps = json_member(pre_tokenizer, "pretokenizers");
  if (!steps.is_array() || steps.size() != 2) {
    return malformed(where, "pre_tokenizer Sequence", "a Split and a ByteLevel");
  }
  ASSAY_TRY(std::string pattern, pattern_of_split(steps[0], where));
  ASSAY_TRY_VOID(check_byte_level(steps[1], false, where));
  return pattern;
}

}  // namespace assay::data
