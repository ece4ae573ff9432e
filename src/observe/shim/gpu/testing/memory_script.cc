#include "observe/shim/gpu/testing/memory_script.h"

#include <cstdlib>

#include "observe/shim/gpu/testing/memory_words.h"

namespace memory {
namespace {

Word parse(const std::string& text) {
  Word word;
  const std::size_t equals = text.find('=');
  std::string left = equals == std::string::npos ? text : text.substr(equals + 1);
  if (equals != std::string::npos) word.label = text.substr(0, equals);
  std::size_t colon = left.find(':');
  word.what = left.substr(0, colon);
  if (colon != std::string::npos) word.rest = left.substr(colon + 1);
  while (colon != std::string::npos) {
    word.numbers.push_back(std::strtoull(left.c_str() + colon + 1, nullptr, 10));
    colon = left.find(':', colon + 1);
  }
  return word;
}

}  // namespace
}  // namespace memory

int memory_script(int count, char** arguments) {
  using namespace memory;
  State state;
  Words words = allocation_words(state);
  for (Words family : {churn_words(state), context_words(state), graph_words(state),
                       process_words(), told_words(state)}) {
    words.merge(family);
  }
  for (int i = 0; i < count; ++i) {
    const Word word = parse(arguments[i]);
    const auto found = words.find(word.what);
    if (found == words.end()) {
      std::fprintf(stderr, "memory: what is %s?\n", word.what.c_str());
      return 64;
    }
    const int result = found->second(word);
    if (word.label.empty()) continue;
    std::printf("%s %d\n", word.label.c_str(), result);
    std::fflush(stdout);
  }
  return 0;
}
