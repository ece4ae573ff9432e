# A room is one folder under src/ and one library, assay_<room>. What it may use stands in
# src/LAYERS and nowhere else: the link line is made from it here, and tests/layering checks the
# #include lines against it.
file(STRINGS ${CMAKE_SOURCE_DIR}/src/LAYERS _layers REGEX "^[a-z]")
set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/LAYERS)
set(ASSAY_ROOMS)
foreach(line IN LISTS _layers)
  string(REGEX MATCH "^([^|]*)\\|([^|]*)\\|" _ "${line}")
  string(STRIP "${CMAKE_MATCH_1}" room)
  string(STRIP "${CMAKE_MATCH_2}" uses)
  string(REPLACE " " ";" uses "${uses}")
  list(APPEND ASSAY_ROOMS ${room})
  set(ASSAY_USES_${room} ${uses})
endforeach()

# Files of a target are compiled several at a time (CMAKE_UNITY_BUILD in CMakePresets.json), which
# halves a clean build. Few at a time where people edit and rebuild, many where nobody waits for one
# file. `make tidy` compiles each by itself and so finds an #include that is missing.
set(CMAKE_UNITY_BUILD_BATCH_SIZE 16)
set(_test_batch 16)
set(_checked_batch 16)

# Heavy third-party headers are compiled once, here, and reused by every room and test.
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tl-expected REQUIRED)
set(_heavy_headers
  <algorithm> <chrono> <cstdint> <filesystem> <functional> <map> <memory> <optional> <span> <string>
  <string_view> <utility> <variant> <vector> <fmt/format.h> <nlohmann/json.hpp> <tl/expected.hpp>)

add_library(assay_pch STATIC ${CMAKE_SOURCE_DIR}/cmake/pch.cc)
target_link_libraries(assay_pch PUBLIC assay_options fmt::fmt nlohmann_json::nlohmann_json tl::expected)
target_precompile_headers(assay_pch PRIVATE ${_heavy_headers})

# Most rooms are built a second time, checked by sanitizers, and their tests linked against both:
# `make test` covers the sanitizers at the price of the rooms, without compiling the tests twice.
# The twins are built by the target `checked` only, so that plain `make` stays quick.
# The sanitized build trees (make asan, make tsan) check the test code as well and need no twins.
set(ASSAY_TWINS OFF)
if(ASSAY_TESTS)
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
  include(GoogleTest)
  # Test programs are many and large; lld links them in a quarter of the time.
  find_program(ASSAY_LLD ld.lld)

  # Test code is compiled for a fast build, not for speed: what it calls is the real thing. Nor for a
  # debugger, and the twins neither: `make asan` has the lines.
  add_library(assay_test_pch STATIC ${CMAKE_SOURCE_DIR}/cmake/pch.cc)
  target_link_libraries(assay_test_pch PUBLIC
    assay_options fmt::fmt nlohmann_json::nlohmann_json tl::expected
    GTest::gmock GTest::gtest_main rapidcheck)
  target_compile_options(assay_test_pch PUBLIC -O0 -g0)
  target_precompile_headers(assay_test_pch PRIVATE
    ${_heavy_headers} <fstream> <gmock/gmock.h> <gtest/gtest.h> <rapidcheck/gtest.h>)

  if(NOT ASSAY_SANITIZE)
    set(ASSAY_TWINS ON)
    add_custom_target(checked)
    add_library(assay_pch_checked STATIC ${CMAKE_SOURCE_DIR}/cmake/pch.cc)
    target_link_libraries(assay_pch_checked PUBLIC assay_options fmt::fmt nlohmann_json::nlohmann_json tl::expected)
    sanitize(assay_pch_checked PUBLIC address,undefined)
    # Pointer checks on every access cost a third of the compile time; `make asan` has them.
    target_compile_options(assay_pch_checked PUBLIC -O0 -g0 -UNDEBUG -fno-sanitize=null,alignment,object-size,vptr)
    set_target_properties(assay_pch_checked PROPERTIES EXCLUDE_FROM_ALL ON)
    target_precompile_headers(assay_pch_checked PRIVATE ${_heavy_headers})
  endif()
endif()

# _room_library(ROOM SUFFIX SOURCES… ): assay_ROOM or, with the suffix _checked, its twin.
function(_room_library name suffix libraries sources)
  string(REPLACE "/" "_" target assay_${name}${suffix})
  add_library(${target} STATIC ${sources})
  target_link_libraries(${target} PUBLIC assay_pch${suffix} PRIVATE ${libraries})
  target_precompile_headers(${target} REUSE_FROM assay_pch${suffix})
  foreach(used IN LISTS ASSAY_USES_${name})
    string(REPLACE "/" "_" used_target assay_${used}${suffix})
    if(TARGET ${used_target})  # else it is reserved, or has headers only
      target_link_libraries(${target} PUBLIC ${used_target})
    endif()
  endforeach()
endfunction()

# room(NAME [PLAIN_TEST] [COLD] [FOLDERS …] [LIBRARIES …] [TEST_SOURCES …] [TEST_LIBRARIES …]
# [TEST_DEFINITIONS …] [TEST_NEEDS …] [TWIN_WITHOUT CASES] [ONLY_IF CONDITION]): the library of all
# *.cc here and in the folders, which are parts of a large room and no rooms themselves, and a test
# of all *_test.cc (plus TEST_SOURCES) that links the libraries, sees the definitions and is built
# after the targets it needs. PLAIN_TEST: arithmetic that sanitizers have little to say about,
# or what would take too long, is tested once; `make asan` runs it under them, and the cases that the twin leaves out because they
# take long there. COLD: what it does is done once per command, so it is compiled quickly rather than
# well. Where the condition does not hold, the room is its *_fallback.cc and has no test; where it
# does, it is everything else.
function(room name)
  cmake_parse_arguments(arg "PLAIN_TEST;COLD" "ONLY_IF;TWIN_WITHOUT" "FOLDERS;LIBRARIES;TEST_SOURCES;TEST_LIBRARIES;TEST_DEFINITIONS;TEST_NEEDS" ${ARGN})
  list(TRANSFORM arg_FOLDERS APPEND /*.cc)
  file(GLOB sources CONFIGURE_DEPENDS *.cc ${arg_FOLDERS})
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
  _room_library(${name} "" "${arg_LIBRARIES}" "${sources}")
  if(arg_COLD)
    target_compile_options(assay_${flat} PRIVATE -O1)
  endif()
  if(ASSAY_TWINS)
    _room_library(${name} _checked "${arg_LIBRARIES}" "${sources}")
    set_target_properties(assay_${flat}_checked PROPERTIES
      EXCLUDE_FROM_ALL ON UNITY_BUILD_BATCH_SIZE ${_checked_batch})
  endif()
  if(ASSAY_TESTS AND tests)
    set(no_twin)
    if(arg_PLAIN_TEST)
      set(no_twin NO_TWIN)
    endif()
    assay_test(${flat}_test ${no_twin} ROOMS ${name} SOURCES ${tests} ${arg_TEST_SOURCES}
      LIBRARIES ${arg_LIBRARIES} ${arg_TEST_LIBRARIES}
      DEFINITIONS ${arg_TEST_DEFINITIONS} NEEDS ${arg_TEST_NEEDS} TWIN_WITHOUT ${arg_TWIN_WITHOUT})
  endif()
endfunction()

# room_sources(ROOM FILES…): generated sources, for the room and its twin.
function(room_sources name)
  string(REPLACE "/" "_" name ${name})
  target_sources(assay_${name} PRIVATE ${ARGN})
  if(ASSAY_TWINS)
    target_sources(assay_${name}_checked PRIVATE ${ARGN})
  endif()
endfunction()

# Cases that run the command-line program are ctest tests of their own. The cases of a room are so
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
      PROPERTIES TIMEOUT 120 ENVIRONMENT "${environment}")
  else()
    add_test(NAME ${program} COMMAND ${program} --gtest_brief=1)
    set_tests_properties(${program} PROPERTIES TIMEOUT 300)
  endif()
endfunction()

# assay_test(NAME [PROGRAM] [NO_TWIN] ROOMS … SOURCES … [LIBRARIES …] [DEFINITIONS …] [NEEDS …]
# [TWIN_WITHOUT CASES]): a GoogleTest program that is run by ctest; with twins, also NAME_checked, of
# the same objects. With PROGRAM the test runs the command-line program, which has no twin: `make
# asan` instruments it. NO_TWIN is for a test of something else than rooms.
function(assay_test name)
  cmake_parse_arguments(arg "PROGRAM;NO_TWIN" "TWIN_WITHOUT" "ROOMS;SOURCES;LIBRARIES;DEFINITIONS;NEEDS" ${ARGN})
  add_library(${name}_objects OBJECT ${arg_SOURCES})
  set_target_properties(${name}_objects PROPERTIES UNITY_BUILD_BATCH_SIZE ${_test_batch})
  target_link_libraries(${name}_objects PRIVATE assay_test_pch)
  target_precompile_headers(${name}_objects REUSE_FROM assay_test_pch)
  target_compile_definitions(${name}_objects PRIVATE ${arg_DEFINITIONS})
  target_include_directories(${name}_objects PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  if(arg_NEEDS)
    add_dependencies(${name}_objects ${arg_NEEDS})
  endif()

  set(rooms ${arg_ROOMS})
  list(TRANSFORM rooms PREPEND assay_)
  list(TRANSFORM rooms REPLACE "/" "_")
  set(program)
  if(arg_PROGRAM)
    set(program ASSAY_PROGRAM=$<TARGET_FILE:assay>)
    add_dependencies(${name}_objects assay)
  endif()
  _test_program(${name} ${name}_objects "${rooms};${arg_LIBRARIES}" "${program}")
  if(ASSAY_TWINS AND NOT arg_NO_TWIN AND NOT arg_PROGRAM)
    list(TRANSFORM rooms APPEND _checked)
    _test_program(${name}_checked ${name}_objects "${rooms};${arg_LIBRARIES}" "")
    # Freed memory that is kept to catch late uses: of the usual 256 MiB, each of the hundreds of
    # forks in tests that kill would copy the page tables. Properties are tried on a quarter of the
    # cases that the plain run tries: sanitizers look at how, not at what.
    set_tests_properties(${name}_checked PROPERTIES ENVIRONMENT
      "ASAN_OPTIONS=quarantine_size_mb=16;RC_PARAMS=max_success=25;GTEST_FILTER=-${arg_TWIN_WITHOUT}")
    set_target_properties(${name}_checked PROPERTIES EXCLUDE_FROM_ALL ON)
    add_dependencies(checked ${name}_checked)
  endif()
endfunction()
