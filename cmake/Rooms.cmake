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

# Heavy third-party headers are compiled once, here, and reused by every room and test.
add_library(assay_pch STATIC ${CMAKE_SOURCE_DIR}/cmake/pch.cc)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tl-expected REQUIRED)
target_link_libraries(assay_pch PUBLIC assay_options fmt::fmt nlohmann_json::nlohmann_json tl::expected)
target_precompile_headers(assay_pch PRIVATE
  <algorithm> <chrono> <cstdint> <filesystem> <functional> <map> <memory> <optional> <span> <string>
  <string_view> <utility> <variant> <vector> <fmt/format.h> <nlohmann/json.hpp> <tl/expected.hpp>)

# room(SOURCES are *.cc, tests are *_test.cc beside them; extra arguments are third-party libraries)
function(room name)
  file(GLOB sources CONFIGURE_DEPENDS *.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")

  string(REPLACE "/" "_" target assay_${name})
  add_library(${target} STATIC ${sources})
  target_link_libraries(${target} PUBLIC assay_pch)
  target_link_libraries(${target} PRIVATE ${ARGN})
  target_precompile_headers(${target} REUSE_FROM assay_pch)
  foreach(used IN LISTS ASSAY_USES_${name})
    string(REPLACE "/" "_" used_target assay_${used})
    target_link_libraries(${target} PUBLIC ${used_target})
  endforeach()

  if(ASSAY_TESTS AND tests)
    assay_test(${target}_test ${tests})
    target_link_libraries(${target}_test PRIVATE ${target} ${ARGN})
  endif()
endfunction()

if(ASSAY_TESTS)
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
  include(GoogleTest)
  # Test code is compiled for a fast build, not for speed: what it calls is the real thing.
  add_library(assay_test_pch STATIC ${CMAKE_SOURCE_DIR}/cmake/pch.cc)
  target_link_libraries(assay_test_pch PUBLIC assay_pch GTest::gmock GTest::gtest_main rapidcheck)
  target_compile_options(assay_test_pch PUBLIC -O0 -g1)
  target_precompile_headers(assay_test_pch PRIVATE
    <algorithm> <filesystem> <fstream> <map> <optional> <string> <vector> <fmt/format.h>
    <nlohmann/json.hpp> <tl/expected.hpp> <gmock/gmock.h> <gtest/gtest.h> <rapidcheck/gtest.h>)
endif()

# assay_test(NAME SOURCES…): a GoogleTest binary whose cases are ctest tests.
function(assay_test name)
  add_executable(${name} ${ARGN})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(${name} PRIVATE assay_test_pch)
  target_precompile_headers(${name} REUSE_FROM assay_test_pch)
  gtest_discover_tests(${name} TEST_PREFIX ${name}. DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 120)
endfunction()
