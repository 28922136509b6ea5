# What `cmake --install` and `cpack` ship, in components: runtime (ds-run, ds-ckpt and the libraries that they open) has
# neither LLVM nor LibTorch; compiler (ds-opt, ds-import) has both; cuda, where it was built, is what ds-run opens for GPUs.
#
#   PREFIX/bin              the tools
#   PREFIX/lib/deepstage    libraries that tools open by where they stand themselves
#   PREFIX/share            manual pages, completions, examples, documentation

include(DsNotices)
set(compiler_tools ds-opt)
if(DS_IMPORT)
  list(APPEND compiler_tools ds-import)
endif()
set(runtime_tools ds-ckpt ds-run)
install(TARGETS ${runtime_tools} RUNTIME DESTINATION bin COMPONENT runtime)
install(TARGETS ${compiler_tools} RUNTIME DESTINATION bin COMPONENT compiler)
foreach(plugin ds-onednn ds-gloo ds-pmix)
  if(TARGET ${plugin})
    install(TARGETS ${plugin} LIBRARY DESTINATION lib/deepstage COMPONENT runtime)
  endif()
endforeach()
set(components runtime compiler)
if(TARGET ds-cuda)
  list(APPEND components cuda)
  install(TARGETS ds-cuda LIBRARY DESTINATION lib/deepstage COMPONENT cuda)
  install(FILES ${DS_NOTICES}/cuda DESTINATION share/doc/deepstage-cuda RENAME copyright COMPONENT cuda)
endif()

# Manual pages and completions are what the tools say of themselves.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
foreach(component runtime compiler)
  foreach(tool ${${component}_tools})
    set(page ${CMAKE_BINARY_DIR}/share/man/man1/${tool}.1)
    set(completion ${CMAKE_BINARY_DIR}/share/bash-completion/completions/${tool})
    add_custom_command(
      OUTPUT ${page} ${completion}
      COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/script/describe-tools --out ${CMAKE_BINARY_DIR}/share $<TARGET_FILE:${tool}>
      DEPENDS ${tool} ${PROJECT_SOURCE_DIR}/script/describe-tools
      COMMENT "Describing ${tool}")
    install(FILES ${page} DESTINATION share/man/man1 COMPONENT ${component})
    install(FILES ${completion} DESTINATION share/bash-completion/completions COMPONENT ${component})
    list(APPEND manuals ${page})
  endforeach()
endforeach()
set(in_all ALL)
if(DS_SANITIZE)  # what the tools say is the same, and their options for sanitizers are not known here
  set(in_all)
endif()
add_custom_target(ds-manuals ${in_all} DEPENDS ${manuals})

install(FILES ${DS_NOTICES}/runtime DESTINATION share/doc/deepstage-runtime RENAME copyright COMPONENT runtime)
install(FILES ${DS_NOTICES}/compiler DESTINATION share/doc/deepstage RENAME copyright COMPONENT compiler)
install(FILES README.md DESTINATION share/doc/deepstage COMPONENT compiler)
install(DIRECTORY docs/ DESTINATION share/doc/deepstage/docs COMPONENT compiler FILES_MATCHING PATTERN "*.md")
install(DIRECTORY examples/configs examples/models DESTINATION share/deepstage/examples COMPONENT compiler)

# Packages. Symbols stay: a rank that hangs shows its stacks by their names.
set(CPACK_PACKAGE_NAME deepstage)
set(CPACK_PACKAGE_VENDOR Deepstage)
set(CPACK_PACKAGE_CONTACT "Deepstage developers <deepstage@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Ahead-of-time compiler and planner for training large models")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_STRIP_FILES OFF)
set(CPACK_COMPONENTS_ALL ${components})
set(CPACK_PACKAGE_FILE_NAME deepstage-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME deepstage-runtime)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "Runs programs made by ds-opt (ds-run) and keeps their checkpoints (ds-ckpt).")
set(CPACK_DEBIAN_COMPILER_PACKAGE_NAME deepstage)
set(CPACK_COMPONENT_COMPILER_DESCRIPTION "Makes plans and programs of models (ds-opt), and imports TorchScript (ds-import).")
set(CPACK_DEBIAN_COMPILER_PACKAGE_DEPENDS "deepstage-runtime (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_CUDA_PACKAGE_NAME deepstage-cuda)
set(CPACK_COMPONENT_CUDA_DESCRIPTION "Lets ds-run use NVIDIA GPUs; the driver, cuBLASLt and NCCL are NVIDIA's own packages.")
set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "deepstage-runtime (= ${PROJECT_VERSION})")
include(CPack)
