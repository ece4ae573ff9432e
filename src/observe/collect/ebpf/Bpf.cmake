# Compiles the BPF programs and puts them into the module observe/collect. Included by the module's
# CMakeLists.txt, after assay_module(). The programs include libbpf's headers; nothing of libbpf is
# linked (ebpf/object_file.h says why).
find_program(ASSAY_BPF_CLANG NAMES clang clang-14 clang-16 clang-19 REQUIRED)
find_program(ASSAY_BPF_STRIP NAMES llvm-strip llvm-strip-14 llvm-strip-16 llvm-strip-19)

set(_bpf_source ${CMAKE_CURRENT_SOURCE_DIR}/ebpf/bpf/files.bpf.c)
set(_bpf_object ${CMAKE_CURRENT_BINARY_DIR}/files.bpf.o)
file(GLOB _bpf_headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/ebpf/bpf/*.h)
# -g makes the type information (BTF) from which the loader finds fields; the rest of what it makes
# is not needed and goes. v3 (Linux 5.12) has atomic exchange.
set(_bpf_strip)
if(ASSAY_BPF_STRIP)
  set(_bpf_strip COMMAND ${ASSAY_BPF_STRIP} -g ${_bpf_object})
endif()
add_custom_command(
  OUTPUT ${_bpf_object}
  COMMAND ${ASSAY_BPF_CLANG} -target bpf -mcpu=v3 -g -O2 -Wall -Wextra -Werror
          -Wno-unused-parameter -Wno-unused-function -Wno-sign-compare
          -D__TARGET_ARCH_x86 -I${CMAKE_SOURCE_DIR}/src -idirafter /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}
          -c ${_bpf_source} -o ${_bpf_object}
  ${_bpf_strip}
  COMMAND sh -c "sha256sum files.bpf.o | sed 's/^/\\/\\/ /' > files.bpf.sum.h"
  WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}
  DEPENDS ${_bpf_source} ${_bpf_headers}
  COMMENT "Compiling BPF programs"
  VERBATIM)
set_source_files_properties(ebpf/object_file_image.cc PROPERTIES
  OBJECT_DEPENDS ${_bpf_object}
  COMPILE_DEFINITIONS
    "ASSAY_BPF_OBJECT=\"${_bpf_object}\";ASSAY_BPF_SUM=\"${CMAKE_CURRENT_BINARY_DIR}/files.bpf.sum.h\""
  SKIP_PRECOMPILE_HEADERS ON)

if(ASSAY_TESTS)
  add_executable(ebpf_subject testing/ebpf_subject.cc)
  target_compile_options(ebpf_subject PRIVATE -O1)
  target_link_libraries(ebpf_subject PRIVATE -static)
  add_dependencies(observe_collect_test_objects ebpf_subject)
  target_compile_definitions(observe_collect_test_objects PRIVATE
    ASSAY_EBPF_SUBJECT="$<TARGET_FILE:ebpf_subject>")
endif()
