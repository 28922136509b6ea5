# Options that change how the tree is built, never what it does.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

# Tools find the libraries that come with them by where they stand themselves, so that an installation can be moved.
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib/deepstage")
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

set(DS_SANITIZE "" CACHE STRING "Sanitizers to build with, as -fsanitize= spells them")
option(DS_TESTS "Build unit tests, lit tests and measurements" ON)
option(DS_IMPORT "Build ds-import, which needs LibTorch" ON)
if(DS_TESTS AND NOT DS_IMPORT)
  message(FATAL_ERROR "DS_TESTS=ON needs DS_IMPORT=ON: there are tests of the import")
endif()

find_program(DS_CCACHE ccache)

# Headers are most of a build. The choice does not depend on what a compiler cache holds: one that precompiled builds have filled knows
# nothing of the other kind, and a checkout built in turns would miss it each time.
set(DS_PRECOMPILE_DEFAULT OFF)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  set(DS_PRECOMPILE_DEFAULT ON)
endif()
option(DS_PRECOMPILE "Precompile MLIR's and googletest's headers (default: ON for clang)" ${DS_PRECOMPILE_DEFAULT})
option(DS_COVERAGE "Instrument for clang source-based coverage" OFF)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
# Asserts stay on: they are our own invariants and cost nothing that a step would notice.
string(REPLACE "-DNDEBUG" "" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
string(REPLACE "-DNDEBUG" "" CMAKE_CXX_FLAGS_RELWITHDEBINFO "${CMAKE_CXX_FLAGS_RELWITHDEBINFO}")
string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")

add_compile_options(-Wall -Wextra -Wno-unused-parameter -ffunction-sections -fdata-sections)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  add_link_options(-fuse-ld=lld)
endif()
add_link_options(-Wl,--gc-sections -Wl,--as-needed)
if(DS_SANITIZE)  # a finding ends the program, so that a test sees it
  add_compile_options(-fsanitize=${DS_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${DS_SANITIZE})
endif()
if(DS_COVERAGE)
  add_compile_options(-fprofile-instr-generate -fcoverage-mapping)
  add_link_options(-fprofile-instr-generate)
endif()

if(DS_CCACHE)  # which takes files with precompiled headers if told that no macro behind them changes what they mean
  set(CMAKE_C_COMPILER_LAUNCHER ${DS_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${DS_CCACHE})
endif()
