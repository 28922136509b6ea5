//===- ds-opt.cpp - The compiler and planner ------------------------------------===//
#include "Driver.h"

#include "ds/Support/RunTool.h"

int main(int argc, char **argv) {
  return ds::runTool("ds-opt", argc, argv, [](int count, char **arguments) {
    return static_cast<int>(ds::opt::run(count, arguments));
  });
}
