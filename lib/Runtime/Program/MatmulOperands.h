//===- MatmulOperands.h - What a Matmul command multiplies, and where it lies ------===//
#ifndef DS_LIB_RUNTIME_PROGRAM_MATMULOPERANDS_H
#define DS_LIB_RUNTIME_PROGRAM_MATMULOPERANDS_H

#include "ds/Runtime/Program/Library.h"
#include "ds/Runtime/Program/MatmulDesc.h"
#include "ds/Runtime/Program/ProductForm.h"
#include "ds/Runtime/Program/ProgramFile.h"

namespace ds::rt {

struct MatmulOperands {
  MatmulDesc desc;
  MatmulMemory memory;
  Activation activation;
  void *geluInput; ///< what GELU is taken of: written or read, or null
  uint64_t workspaceBytes;
  ProductForm form;
  Summed summed; ///< what there are sums of
  void *sumsOf;  ///< those, of type sumsType; or null
  DType sumsType;

  bool hasGelu() const { return activation >= Activation::Gelu; }
  /// Memory of the product alone: before GELU its sums are GELU's input, where that is wanted.
  MatmulMemory sums() const {
    MatmulMemory sums = memory;
    if (activation == Activation::Gelu && geluInput)
      sums.result = geluInput;
    return sums;
  }
};

/// `address` gives where a buffer of the program is.
template <class Address>
MatmulOperands matmulOperands(const Program &program, const Command &command, const Address &address) {
  const uint32_t *ids = program.operands.data() + command.firstOperand;
  const int64_t *params = program.params.data() + command.firstParam;
  const MatmulExtras extras = matmulExtras(program, command);
  const bool planned = command.workspace != UINT32_MAX;
  const auto &buffers = program.buffers;
  return {describeMatmul(buffers[ids[0]], buffers[ids[1]], buffers[ids[2]], extras.bias, params),
          {address(ids[0]), address(ids[1]), extras.bias ? address(ids[extras.biasIndex]) : nullptr,
           address(ids[2]), planned ? address(command.workspace) : nullptr},
          static_cast<Activation>(params[3]),
          extras.input ? address(ids[extras.inputIndex]) : nullptr,
          planned ? extentBytes(buffers[command.workspace]) : 0,
          formOf({params, command.numParams}),
          summedOf({params, command.numParams}),
          extras.sums ? address(ids[extras.sumsIndex]) : nullptr,
          extras.sums ? extras.sums->dtype : DType::F32};
}

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_PROGRAM_MATMULOPERANDS_H
