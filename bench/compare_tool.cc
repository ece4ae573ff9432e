// A fixed amount of work, in rounds: 1,010,000 of them take 1 % longer than 1,000,000. The command
// that bench/compare compares with itself.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  const std::uint64_t rounds = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0;
  std::uint64_t state = 1;
  // Each round depends on the one before.
  for (std::uint64_t i = 0; i < rounds; ++i)
    state = state * 6364136223846793005U + 1442695040888963407U;
  std::printf("%llu\n", static_cast<unsigned long long>(state));
}
