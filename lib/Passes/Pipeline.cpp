//===- Pipeline.cpp - The order of passes, as prose ------------------------------===//
#include "ds/Passes/Passes.h"
