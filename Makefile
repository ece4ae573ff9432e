# The commands of the project. `make demo` and `make test` work on a fresh Debian 12 machine.
.DEFAULT_GOAL := all
.PHONY: all setup demo test bench asan tsan format format-check tidy clean

all: setup build/build.ninja
	@cmake --build --preset release

# Where there is a CUDA compiler, GPU code is compiled too; without a network it is left out.
setup:
	@scripts/setup build test
	@! command -v nvcc >/dev/null || scripts/setup cuda || true

# One configured tree per CMake preset; Ninja re-runs CMake by itself when its inputs change.
build/build.ninja:
	@cmake --preset release
build/%/build.ninja:
	@cmake --preset $*

demo: all
	@scripts/demo

# Tests named …_sanitized run the same cases on modules built with sanitizers.
test: setup build/build.ninja format-check
	@cmake --build --preset test
	@ctest --preset release

asan tsan: %: setup build/%/build.ninja
	@cmake --build --preset $@
	@ctest --preset $@

bench:
	@scripts/setup build test bench
	@$(MAKE) --no-print-directory build/bench/build.ninja
	@cmake --build --preset bench
	@bench/run

# Tracked and new files; without git (a tarball) all of them.
sources = $(shell git ls-files --cached --others --exclude-standard '*.cc' '*.h' '*.cu' '*.cuh' 2>/dev/null || \
  find src apps tests bench -name '*.cc' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh')

format: setup
	@clang-format -i $(sources)

format-check: setup
	@clang-format --dry-run --Werror $(sources)

# The program, not its tests: they are checked by running them.
tidy:
	@scripts/setup build tidy
	@$(MAKE) --no-print-directory build/tidy/build.ninja
	@printf '%s\n' $(filter-out tests/% bench/% %_test.cc,$(filter %.cc,$(sources))) | \
	  grep -v /testing/ | xargs -P 2 -n 4 clang-tidy --quiet -p build/tidy

clean:
	@rm -rf build
