# A module is a folder under src/ with a line in src/LAYERS, which lists what it may include. A folder
# with a CMakeLists.txt is a library, assay_<module>; a module without one is compiled into the
# library of the nearest folder above that has one. Link lines are made from src/LAYERS here, and
# tests/structure checks the #include lines against it.
file(STRINGS ${CMAKE_SOURCE_DIR}/src/LAYERS _layers REGEX "^[a-z]")
set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/LAYERS)

# _library_of(MODULE RESULT): the module whose CMakeLists.txt compiles this one's files.
function(_library_of module result)
  set(folder ${module})
  while(folder AND NOT EXISTS ${CMAKE_SOURCE_DIR}/src/${folder}/CMakeLists.txt)
    get_filename_component(folder "${folder}" DIRECTORY)
  endwhile()
  set(${result} "${folder}" PARENT_SCOPE)
endfunction()

# Per library: the sub-folders compiled into it, and the libraries that it and they use.
set(ASSAY_MODULES)
foreach(line IN LISTS _layers)
  string(REGEX MATCH "^([^|]*)\\|([^|]*)\\|" _ "${line}")
  string(STRIP "${CMAKE_MATCH_1}" module)
  string(STRIP "${CMAKE_MATCH_2}" uses)
  string(REPLACE " " ";" uses "${uses}")
  list(APPEND ASSAY_MODULES ${module})
  _library_of(${module} library)
  if(NOT library)
    continue()  # reserved: its place is decided, its code is not written
  endif()
  if(NOT library STREQUAL module)
    list(APPEND ASSAY_FOLDERS_${library} ${CMAKE_SOURCE_DIR}/src/${module})
  endif()
  foreach(used IN LISTS uses)
    _library_of(${used} used_library)
    if(used_library AND NOT used_library STREQUAL library)
      list(APPEND ASSAY_USES_${library} ${used_library})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES ASSAY_USES_${library})
endforeach()

# Files of a target are compiled several at a time (CMAKE_UNITY_BUILD in CMakePresets.json), which
# halves a clean build. `make tidy` compiles each by itself and so finds a missing #include.
set(CMAKE_UNITY_BUILD_BATCH_SIZE 32)

# Heavy third-party headers are compiled once, here, and reused by every module and test.
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tl-expected REQUIRED)
set(_heavy_headers
  <algorithm> <chrono> <cstdint> <filesystem> <functional> <map> <memory> <optional> <span> <string>
  <string_view> <utility> <variant> <vector> <fmt/format.h> <nlohmann/json.hpp> <tl/expected.hpp>)

add_library(assay_pch STATIC ${CMAKE_SOURCE_DIR}/cmake/pch.cc)
target_link_libraries(assay_pch PUBLIC assay_options fmt::fmt nlohmann_json::nlohmann_json tl::expected)
target_precompile_headers(assay_pch PRIVATE ${_heavy_headers})

# Modules have a sanitized variant, assay_<module>_sanitized, compiled with address and
# undefined-behaviour sanitizers. Their tests are compiled once and linked against both, so that
# `make test` runs them sanitized without compiling the tests twice. The variants are built by the
# target `sanitized` only: plain `make` stays quick. The sanitized build trees (make asan, make
# tsan) instrument everything, test code and programs too, and need no variants.
set(ASSAY_SANITIZED_VARIANTS OFF)

# What is compiled without optimisation (test code and sanitized variants) is compiled by clang, which
# takes half of gcc's time for it; with optimisation it takes longer. Their objects mix: both use
# libstdc++. Sanitizer runtimes belong to a compiler, so what is sanitized is linked by clang as well.
# In the sanitized build trees gcc compiles everything.
find_program(ASSAY_CLANG clang++)
if(ASSAY_CLANG AND NOT DEFINED ASSAY_CLANG_SANITIZES)  # its runtimes are a separate package
  file(WRITE ${CMAKE_BINARY_DIR}/sanitizes.cc "int main() {}\n")
  execute_process(
    COMMAND ${ASSAY_CLANG} -fsanitize=address,undefined sanitizes.cc -o sanitizes
    WORKING_DIRECTORY ${CMAKE_BINARY_DIR} RESULT_VARIABLE _failed OUTPUT_QUIET ERROR_QUIET)
  if(_failed)
    message(STATUS "${ASSAY_CLANG} has no sanitizer runtimes; ${CMAKE_CXX_COMPILER} compiles the tests, too")
    set(ASSAY_CLANG "" CACHE FILEPATH "" FORCE)
  endif()
  set(ASSAY_CLANG_SANITIZES TRUE CACHE INTERNAL "clang was checked")
endif()
function(_compile_with_clang target)
  if(ASSAY_CLANG AND CMAKE_CXX_COMPILER_ID STREQUAL GNU AND NOT ASSAY_SANITIZE)
    set(launcher ${CMAKE_SOURCE_DIR}/cmake/with-compiler)
    set_target_properties(${target} PROPERTIES
      CXX_COMPILER_LAUNCHER "${launcher};${CMAKE_CXX_COMPILER_LAUNCHER};${ASSAY_CLANG};--"
      CXX_LINKER_LAUNCHER "${launcher};${ASSAY_CLANG};--")
    # gcc's own options mean nothing to clang. A precompiled header without dates is the same in
    # every build, as ccache needs it; with its templates instantiated it saves a sixth of the time.
    target_compile_options(${target} PRIVATE -Qunused-arguments -Wno-unknown-warning-option
      "SHELL:-Xclang -fno-pch-timestamp" -fpch-instantiate-templates)
  endif()
endfunction()

if(ASSAY_TESTS)
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
  include(GoogleTest)
  # Test programs are many and large; lld links them in a quarter of the time.
  find_program(ASSAY_LLD ld.lld)

  # Test code and sanitized variants are compiled for a fast build, without debug information:
  # `make asan` has it.
  add_library(assay_test_pch STATIC ${CMAKE_SOURCE_DIR}/cmake/pch.cc)
  target_link_libraries(assay_test_pch PUBLIC
    assay_options fmt::fmt nlohmann_json::nlohmann_json tl::expected
    GTest::gmock GTest::gtest_main rapidcheck)
  target_compile_options(assay_test_pch PUBLIC -O0 -g0)
  target_precompile_headers(assay_test_pch PRIVATE
    ${_heavy_headers} <fstream> <gmock/gmock.h> <gtest/gtest.h> <rapidcheck/gtest.h>)
  _compile_with_clang(assay_test_pch)

  if(NOT ASSAY_SANITIZE)
    set(ASSAY_SANITIZED_VARIANTS ON)
    add_custom_target(sanitized)
    add_library(assay_pch_sanitized STATIC ${CMAKE_SOURCE_DIR}/cmake/pch.cc)
    target_link_libraries(assay_pch_sanitized PUBLIC assay_options fmt::fmt nlohmann_json::nlohmann_json tl::expected)
    sanitize(assay_pch_sanitized PUBLIC address,undefined)
    # Pointer checks on every access cost a third of the compile time; `make asan` has them.
    target_compile_options(assay_pch_sanitized PUBLIC -O0 -g0 -UNDEBUG -fno-sanitize=null,alignment,object-size,vptr)
    set_target_properties(assay_pch_sanitized PROPERTIES EXCLUDE_FROM_ALL ON)
    target_precompile_headers(assay_pch_sanitized PRIVATE ${_heavy_headers})
    _compile_with_clang(assay_pch_sanitized)
  endif()
endif()

# _module_library(MODULE SUFFIX LIBRARIES SOURCES): assay_MODULE or, with the suffix _sanitized, its
# sanitized variant.
function(_module_library name suffix libraries sources)
  string(REPLACE "/" "_" target assay_${name}${suffix})
  add_library(${target} STATIC ${sources})
  target_link_libraries(${target} PUBLIC assay_pch${suffix} PRIVATE ${libraries})
  target_precompile_headers(${target} REUSE_FROM assay_pch${suffix})
  if(suffix)
    _compile_with_clang(${target})
  endif()
  foreach(used IN LISTS ASSAY_USES_${name})
    string(REPLACE "/" "_" used_target assay_${used}${suffix})
    if(TARGET ${used_target})  # else it has headers only
      target_link_libraries(${target} PUBLIC ${used_target})
    endif()
  endforeach()
endfunction()

# assay_module(NAME [UNSANITIZED] [COLD] [LIBRARIES …] [TEST_SOURCES …] [TEST_LIBRARIES …]
#   [TEST_DEFINITIONS …] [TEST_NEEDS …] [SANITIZED_SKIPS CASES] [ONLY_IF CONDITION])
#
# The library of all *.cc in this folder and in the modules below it that have no CMakeLists.txt of
# their own, and a test program of all their *_test.cc (plus TEST_SOURCES), which links the
# libraries, sees the definitions and is built after the targets it needs.
# - UNSANITIZED: compiled once. `make test` runs its tests on the plain variant only, and sanitized
#   tests of modules that use it are linked with its plain objects.
# - SANITIZED_SKIPS: a GoogleTest pattern of cases that take too long under sanitizers.
#   `make asan` runs everything.
# - COLD: runs once per command, so it is compiled with -O1 for a faster build.
# - ONLY_IF: where the condition is false, the library is its *_fallback.cc and has no tests; where
#   it is true, it is everything else.
function(assay_module name)
  cmake_parse_arguments(arg "UNSANITIZED;COLD" "ONLY_IF;SANITIZED_SKIPS" "LIBRARIES;TEST_SOURCES;TEST_LIBRARIES;TEST_DEFINITIONS;TEST_NEEDS" ${ARGN})
  set(folders ${ASSAY_FOLDERS_${name}})
  list(TRANSFORM folders APPEND /*.cc)
  file(GLOB sources CONFIGURE_DEPENDS *.cc ${folders})
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  if(DEFINED arg_ONLY_IF)
    if(arg_ONLY_IF)
      list(FILTER sources EXCLUDE REGEX "_fallback\\.cc$")
    else()
      list(FILTER sources INCLUDE REGEX "_fallback\\.cc$")
      set(tests)
    endif()
  endif()

  string(REPLACE "/" "_" flat ${name})  # a target's name has no slash
  _module_library(${name} "" "${arg_LIBRARIES}" "${sources}")
  if(arg_COLD)
    target_compile_options(assay_${flat} PRIVATE -O1)
  endif()
  if(ASSAY_SANITIZED_VARIANTS)
    set(checked "${sources}")
    if(arg_UNSANITIZED)
      set(checked $<TARGET_OBJECTS:assay_${flat}>)
    endif()
    _module_library(${name} _sanitized "${arg_LIBRARIES}" "${checked}")
    set_target_properties(assay_${flat}_sanitized PROPERTIES
      EXCLUDE_FROM_ALL ON LINKER_LANGUAGE CXX OF_PLAIN_OBJECTS "${arg_UNSANITIZED}")
  endif()
  if(ASSAY_TESTS AND tests)
    set(unsanitized)
    if(arg_UNSANITIZED)
      set(unsanitized UNSANITIZED)
    endif()
    assay_test(${flat}_test ${unsanitized} MODULES ${name} SOURCES ${tests} ${arg_TEST_SOURCES}
      LIBRARIES ${arg_LIBRARIES} ${arg_TEST_LIBRARIES}
      DEFINITIONS ${arg_TEST_DEFINITIONS} NEEDS ${arg_TEST_NEEDS} SANITIZED_SKIPS ${arg_SANITIZED_SKIPS})
  endif()
endfunction()

# module_sources(MODULE FILES…): generated sources, for the module and its sanitized variant.
function(module_sources name)
  string(REPLACE "/" "_" name ${name})
  target_sources(assay_${name} PRIVATE ${ARGN})
  if(ASSAY_SANITIZED_VARIANTS)
    get_target_property(has_them assay_${name}_sanitized OF_PLAIN_OBJECTS)
    if(NOT has_them)
      target_sources(assay_${name}_sanitized PRIVATE ${ARGN})
    endif()
  endif()
endfunction()

# _optimised_first(PROGRAM MODULES): links the modules' libraries, and those they use, whole and
# before the test code. Of an inline function that several objects define, a linker takes the first
# one: test code is not optimised, and the modules would run its std::string.
function(_optimised_first program modules)
  set(files)
  while(modules)
    list(POP_FRONT modules module)
    string(REPLACE "/" "_" target assay_${module})
    if(TARGET ${target})  # else it has headers only
      list(APPEND files $<TARGET_FILE:${target}>)
    endif()
    list(APPEND modules ${ASSAY_USES_${module}})
    list(REMOVE_DUPLICATES modules)
  endwhile()
  list(REMOVE_DUPLICATES files)
  list(JOIN files " " files)
  target_link_options(${program} PRIVATE "SHELL:-Wl,--whole-archive ${files} -Wl,--no-whole-archive")
endfunction()

# Cases that run the command-line program are separate ctest tests. The cases of a module are so
# quick that starting a process for each would be most of the time, so they share one.
function(_test_program program objects libraries environment)
  add_executable(${program} $<TARGET_OBJECTS:${objects}>)
  set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(${program} PRIVATE GTest::gmock GTest::gtest_main rapidcheck ${libraries})
  if(ASSAY_LLD)
    target_link_options(${program} PRIVATE -fuse-ld=lld)
  endif()
  if(environment)
    gtest_discover_tests(${program} TEST_PREFIX ${program}. DISCOVERY_TIMEOUT 60
      PROPERTIES ENVIRONMENT "${environment}")
  else()
    add_test(NAME ${program} COMMAND ${program} --gtest_brief=1)
  endif()
endfunction()

# assay_test(NAME [PROGRAM] [UNSANITIZED] MODULES … SOURCES … [LIBRARIES …] [DEFINITIONS …]
#   [NEEDS …] [SANITIZED_SKIPS CASES])
#
# A GoogleTest program that ctest runs and, unless UNSANITIZED, NAME_sanitized: the same objects
# linked against the modules' sanitized variants. With PROGRAM the test runs the command-line
# program, which has no such variant: `make asan` instruments it.
function(assay_test name)
  cmake_parse_arguments(arg "PROGRAM;UNSANITIZED" "SANITIZED_SKIPS" "MODULES;SOURCES;LIBRARIES;DEFINITIONS;NEEDS" ${ARGN})
  add_library(${name}_objects OBJECT ${arg_SOURCES})
  target_link_libraries(${name}_objects PRIVATE assay_test_pch)
  target_precompile_headers(${name}_objects REUSE_FROM assay_test_pch)
  _compile_with_clang(${name}_objects)
  target_compile_definitions(${name}_objects PRIVATE ${arg_DEFINITIONS})
  target_include_directories(${name}_objects PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  if(arg_NEEDS)
    add_dependencies(${name}_objects ${arg_NEEDS})
  endif()

  set(modules ${arg_MODULES})
  list(TRANSFORM modules PREPEND assay_)
  list(TRANSFORM modules REPLACE "/" "_")
  set(program)
  if(arg_PROGRAM)
    set(program ASSAY_PROGRAM=$<TARGET_FILE:assay>)
    add_dependencies(${name}_objects assay)
  endif()
  _test_program(${name} ${name}_objects "${modules};${arg_LIBRARIES}" "${program}")
  _optimised_first(${name} "${arg_MODULES}")
  if(ASSAY_SANITIZED_VARIANTS AND NOT arg_UNSANITIZED AND NOT arg_PROGRAM)
    list(TRANSFORM modules APPEND _sanitized)
    _test_program(${name}_sanitized ${name}_objects "${modules};${arg_LIBRARIES}" "")
    _compile_with_clang(${name}_sanitized)
    # The quarantine of freed memory is 16 MiB instead of 256: tests that inject crashes fork
    # hundreds of times, and each fork copies its page tables. Properties are tried on a quarter of
    # the cases that the plain run tries.
    set_tests_properties(${name}_sanitized PROPERTIES ENVIRONMENT
      "ASAN_OPTIONS=quarantine_size_mb=16;RC_PARAMS=seed=20261116 max_success=25;GTEST_FILTER=-${arg_SANITIZED_SKIPS}")
    set_target_properties(${name}_sanitized PROPERTIES EXCLUDE_FROM_ALL ON)
    add_dependencies(sanitized ${name}_sanitized)
  endif()
endfunction()
