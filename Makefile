# The commands of the project. `make demo` and `make test` work on a fresh Debian 12 machine.
.DEFAULT_GOAL := all
# Targets follow one another under make -j, too: setup comes before CMake. Ninja uses all processors.
.NOTPARALLEL:
.PHONY: all setup demo test check asan tsan fuzz chaos pipeline benches bench format format-check tidy install uninstall clean

# make CARDS=all compiles GPU code for every kind of card (cmake/Cuda.cmake).
all: setup build/build.ninja
	@$(if $(CARDS),cmake --preset release -DASSAY_CUDA_CARDS=$(CARDS),:)
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
	@scripts/check-tree
	@cmake --build --preset test
	@scripts/run-tests release

# Everything instrumented, test code and programs too.
asan tsan: %: setup build/%/build.ninja
	@cmake --build --preset $@
	@scripts/run-tests $@ --timeout 3600

# Property and fuzz tests with many more cases, from another seed each time, instrumented.
fuzz: setup build/asan/build.ninja
	@cmake --build --preset asan
	@RC_PARAMS='max_success=2000' ASSAY_FUZZ_CASES=500000 ASSAY_FUZZ_SEED=$$(date +%s) \
	  scripts/run-tests asan --timeout 3600 -R 'fuzz_test|AnyBytes|^(spec|plan|step|store|lineage|hash|base|plot|http|comm|compare|report|observe_.*|train_data|train_checkpoint)_test$$'

# Tests that kill processes, fill disks and interrupt, ten times over: such failures depend on timing.
chaos: setup build/build.ninja
	@cmake --build --preset test
	@scripts/run-tests release -R chaos --repeat until-fail:10

# Whole pipelines with DVC and Jupyter, installed from the network.
pipeline: setup all
	@scripts/pipeline

# All checks; before a release. Takes about two hours on two cores.
check: test asan tsan fuzz chaos tidy benches

benches:
	@scripts/setup build test bench
	@$(MAKE) --no-print-directory build/bench/build.ninja
	@cmake --build --preset bench
bench: benches
	@bench/run

# Tracked and new files that are there; without git (a tarball) all of them.
sources = $(wildcard $(shell git ls-files --cached --others --exclude-standard '*.cc' '*.h' '*.cu' '*.cuh' 2>/dev/null || \
  find src apps tests bench -name '*.cc' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh'))

format: setup
	@clang-format -i $(sources)

format-check: setup
	@printf '%s\n' $(sources) | xargs -P $(shell nproc) -n 100 clang-format --dry-run --Werror

# The program, not its tests: they are checked by running them. What this tree does not compile (GPU
# code) has no compile command.
tidy:
	@scripts/setup build tidy
	@$(MAKE) --no-print-directory build/tidy/build.ninja
	@sed -n 's|^  "file": "$(CURDIR)/\(.*\)"$$|\1|p' build/tidy/compile_commands.json | \
	  grep -E '^(src|apps)/' | grep -v -e _test.cc -e /testing/ | sort -u | xargs -P 2 -n 4 clang-tidy --quiet -p build/tidy

# make install PREFIX=~/.local; DESTDIR is honoured.
PREFIX ?= /usr/local
install: all
	@scripts/install "$(PREFIX)"
uninstall:
	@scripts/install --remove "$(PREFIX)"

clean:
	@rm -rf build
