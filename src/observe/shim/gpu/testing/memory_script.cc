#include "observe/shim/gpu/testing/memory_script.h"

#include <cstdlib>

namespace memory {
namespace {

Action parse(const std::string& text) {
  Action action;
  const std::size_t equals = text.find('=');
  std::string left = equals == std::string::npos ? text : text.substr(equals + 1);
  if (equals != std::string::npos) action.label = text.substr(0, equals);
  std::size_t colon = left.find(':');
  action.what = left.substr(0, colon);
  if (colon != std::string::npos) action.rest = left.substr(colon + 1);
  while (colon != std::string::npos) {
    action.numbers.push_back(std::strtoull(left.c_str() + colon + 1, nullptr, 10));
    colon = left.find(':', colon + 1);
  }
  return action;
}

}  // namespace
}  // namespace memory

int memory_script(int count, char** arguments) {
  using namespace memory;
  State state;
  Actions actions = allocation_actions(state);
  for (Actions family : {churn_actions(state), context_actions(state), graph_actions(state),
                         process_actions(), query_actions(state)}) {
    actions.merge(family);
  }
  for (int i = 0; i < count; ++i) {
    const Action action = parse(arguments[i]);
    const auto found = actions.find(action.what);
    if (found == actions.end()) {
      std::fprintf(stderr, "memory: what is %s?\n", action.what.c_str());
      return 64;
    }
    const int result = found->second(action);
    if (action.label.empty()) continue;
    std::printf("%s %d\n", action.label.c_str(), result);
    std::fflush(stdout);
  }
  return 0;
}
