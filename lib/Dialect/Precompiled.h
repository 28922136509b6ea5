//===- Precompiled.h - MLIR's headers, read once, as the packaged libraries have them -===//
//
// Our own asserts stay on, and so would those of the packaged headers, which their libraries are built
// without: each question for an interface would spell the interface's name and look for a promise of it, a
// tenth of a plan's time. What stands here is read without them; what a source includes beside it has them.
//
//===------------------------------------------------------------------------------===//
#ifdef NDEBUG
#error "asserts are on in every build"
#endif
#define NDEBUG
#include <cassert>
#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/ADT/TypeSwitch.h>
#include <llvm/Support/raw_ostream.h>
#include <mlir/Dialect/Func/IR/FuncOps.h>
#include <mlir/IR/IRMapping.h>
#include <mlir/IR/Matchers.h>
#include <mlir/IR/PatternMatch.h>
#include <mlir/IR/SymbolTable.h>
#include <mlir/IR/TypeUtilities.h>
#include <mlir/Pass/PassManager.h>
#undef NDEBUG
#include <cassert>
