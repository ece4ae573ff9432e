# embed_files(MODULE NAMESPACE ROOT GLOB…): compiles files into a module as one sorted table of
# (path relative to ROOT, contents), declared by base/embedded_file.h:
#
#   namespace NAMESPACE { std::span<const assay::base::EmbeddedFile> embedded_files(); }
#
# so that the program needs no data directory. Editing an embedded file recompiles only that table.
function(embed_files module namespace root)
  set(files)
  foreach(pattern ${ARGN})
    file(GLOB matched CONFIGURE_DEPENDS ${root}/${pattern})
    list(APPEND files ${matched})
  endforeach()
  list(SORT files)

  set(output ${CMAKE_CURRENT_BINARY_DIR}/embedded_files.cc)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DROOT=${root} -DNAMESPACE=${namespace}
            "-DFILES=${files}" -P ${CMAKE_SOURCE_DIR}/cmake/WriteEmbedded.cmake
    DEPENDS ${files} ${CMAKE_SOURCE_DIR}/cmake/WriteEmbedded.cmake
    COMMENT "Embedding files of ${root}"
    VERBATIM)
  module_sources(${module} ${output})
endfunction()
