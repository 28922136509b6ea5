# The three kinds of library in the tree. Each takes NAME, its sources, and DEPENDS / LINK.
#
# ds_add_plain_library  no MLIR, exceptions and RTTI as the compiler has them (Config, Cost, Runtime, Support)
# ds_add_mlir_library   sees MLIR and LLVM; no exceptions, no RTTI, as the packaged libraries are built
# ds_add_unittest       a gtest executable, registered with ctest; MLIR where it sees MLIR

function(ds_add_plain_library name)
  cmake_parse_arguments(ARG "SHARED" "" "DEPENDS;LINK" ${ARGN})
  set(kind STATIC)
  if(ARG_SHARED)
    set(kind SHARED)
  endif()
  add_library(${name} ${kind} ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# Compile flags of everything that includes an MLIR or LLVM header.
add_library(ds_mlir_flags INTERFACE)
target_include_directories(ds_mlir_flags SYSTEM INTERFACE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
target_include_directories(ds_mlir_flags INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)
target_compile_options(ds_mlir_flags INTERFACE -fno-exceptions -fno-rtti)
target_link_libraries(ds_mlir_flags INTERFACE MLIR LLVM)

function(ds_add_mlir_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC ds_mlir_flags ${ARG_LINK})
  add_dependencies(${name} ds_tablegen ${ARG_DEPENDS})
  if(DS_PRECOMPILE)
    target_precompile_headers(${name} REUSE_FROM ds_mlir_precompiled)
  endif()
endfunction()

# What all of them read first, compiled once: most of their time goes into these headers. An executable, which is compiled
# otherwise, has a copy of its own.
set(DS_MLIR_HEADERS ${PROJECT_SOURCE_DIR}/lib/Dialect/Precompiled.h <ds/Dialect/Ds.h> <ds/Dialect/Work.h> <ds/Passes/Phases.h>
  <ds/Passes/ScheduledFunction.h> <functional> <map> <optional> <string> <vector>)
# Clang writes into a precompiled header when each header was changed, and refuses others of the same content: a compiler cache, or
# a checkout made again, has them with other times. The build itself knows what has changed.
set(DS_PRECOMPILE_FLAGS "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")

if(DS_PRECOMPILE)
  file(TOUCH ${CMAKE_BINARY_DIR}/precompiled.cpp)
  add_library(ds_mlir_precompiled OBJECT ${CMAKE_BINARY_DIR}/precompiled.cpp)
  target_link_libraries(ds_mlir_precompiled PRIVATE ds_mlir_flags)
  target_precompile_headers(ds_mlir_precompiled PRIVATE ${DS_MLIR_HEADERS})
  target_compile_options(ds_mlir_precompiled PRIVATE ${DS_PRECOMPILE_FLAGS})
  add_dependencies(ds_mlir_precompiled ds_tablegen)
endif()

# The same for tests, which are executables and see googletest.
if(DS_PRECOMPILE AND DS_TESTS)
  set(tests_first <gmock/gmock.h> <gtest/gtest.h> <nlohmann/json.hpp> <filesystem> <fstream> <random>)
  file(CONFIGURE OUTPUT precompiled-main.cpp CONTENT "int main() {}\n")
  foreach(kind test mlir_test)
    add_executable(ds_${kind}_precompiled EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/precompiled-main.cpp)
    target_link_libraries(ds_${kind}_precompiled PRIVATE GTest::gtest GTest::gmock)
    target_compile_options(ds_${kind}_precompiled PRIVATE ${DS_PRECOMPILE_FLAGS})
    set_target_properties(ds_${kind}_precompiled PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unittests)
  endforeach()
  target_precompile_headers(ds_test_precompiled PRIVATE ${tests_first})
  target_link_libraries(ds_mlir_test_precompiled PRIVATE ds_mlir_flags)
  target_precompile_headers(ds_mlir_test_precompiled PRIVATE ${DS_MLIR_HEADERS} <mlir/Parser/Parser.h> ${tests_first})
  add_dependencies(ds_mlir_test_precompiled ds_tablegen)
endif()

function(ds_add_unittest name)
  cmake_parse_arguments(ARG "MLIR" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest GTest::gmock GTest::gtest_main)
  if(DS_PRECOMPILE AND ARG_MLIR)
    target_precompile_headers(${name} REUSE_FROM ds_mlir_test_precompiled)
  elseif(DS_PRECOMPILE)
    target_precompile_headers(${name} REUSE_FROM ds_test_precompiled)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unittests)
  add_test(NAME ${name} COMMAND ${name})
  add_dependencies(ds-unittests ${name})
endfunction()
add_custom_target(ds-unittests)
