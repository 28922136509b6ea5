//===- ds-opt.cpp - The compiler and planner ------------------------------------===//
#include "Driver.h"

int main(int argc, char **argv) { return static_cast<int>(ds::opt::run(argc, argv)); }
