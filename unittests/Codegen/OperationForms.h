//===- OperationForms.h - Every elementwise op, in every form that it has --------===//
//
// Bodies of one op each, of tensors and of constants: LLVM makes other functions of a power of 0.5 than of a
// power of x. An op that the dialect gains is missing here until someone writes its form.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_UNITTESTS_CODEGEN_OPERATIONFORMS_H
#define DS_UNITTESTS_CODEGEN_OPERATIONFORMS_H

#include <string>
#include <vector>

namespace ds::test {

/// A body over %x and %y of one element type, of which %r is the result.
struct OperationForm {
  std::string op;     ///< without "ds."
  std::string lines;  ///< TYPE stands for the tensors' type, TRUTH for the same of i1
  std::string result; ///< element type of %r; empty: that of the operands
};

/// All forms for operands of `element`: an mnemonic of floats or integers.
std::vector<OperationForm> operationForms(const std::string &element);

/// The mnemonics of all ops that have a scalar body.
std::vector<std::string> scalarBodyOps();

/// A ds.kernel of `form` over two inputs of `shape`, such as "19x"; empty: of rank 0.
std::string writeKernel(const std::string &name, const OperationForm &form, const std::string &element,
                        const std::string &shape);

} // namespace ds::test

#endif // DS_UNITTESTS_CODEGEN_OPERATIONFORMS_H
