//===- Import.h - From a TorchScript archive to MLIR text and weights -----------===//
#ifndef DS_LIB_IMPORT_TORCH_IMPORT_H
#define DS_LIB_IMPORT_TORCH_IMPORT_H

#include "Value.h"

#include <functional>
#include <string>
#include <vector>

namespace ds::ts {

/// One --input: an argument of the forward, or the label that --loss compares with.
struct Input {
  std::string name;
  Shape shape;
  at::ScalarType type = at::ScalarType::Undefined;
};

/// Reads "x=4x256xi64"; throws Failure (exit code 2) where it is not of that form.
Input parseInput(const std::string &spelling);

struct Request {
  int modelFd = -1;
  int mlirFd = -1;
  int weightsFd = -1; ///< -1: no weights are wanted
  std::vector<Input> inputs;
  std::string loss;                       ///< empty, "cross_entropy" or "mse"
  std::vector<std::string> operatorNames; ///< those that the archive's code calls ("aten::add")
  std::function<void(const std::string &)> notice;
};

/// Writes the module and the weights; throws Failure.
void importModel(const Request &request);

} // namespace ds::ts

#endif // DS_LIB_IMPORT_TORCH_IMPORT_H
