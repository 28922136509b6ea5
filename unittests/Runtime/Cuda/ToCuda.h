//===- ToCuda.h - Programs made by hand, as the compiler would make them for CUDA -------===//
#ifndef DS_UNITTESTS_RUNTIME_CUDA_TOCUDA_H
#define DS_UNITTESTS_RUNTIME_CUDA_TOCUDA_H

#include "ProgramBuilder.h"

namespace ds::rt::test {

/// Makes the kernels of a program built by hand into entries of PTX for `target`, and its launches CUDA's.
inline void toCuda(Program &program, const std::string &target = "sm_90") {
  program.target = "cuda:" + target;
  std::string text = ".version 7.8\n.target " + target + "\n.address_size 64\n";
  for (uint32_t i = 0; i < program.kernels.size(); ++i) {
    Kernel &kernel = program.kernels[i];
    const Command *launch = nullptr;
    for (const Command &command : program.commands)
      if (command.kind == CommandKind::Kernel && command.callee == i)
        launch = &command;
    kernel.blockThreads = 128;
    kernel.unitsPerBlock = 256;
    kernel.alignments.assign(launch->numOperands, 4);
    text += ".visible .entry " + kernel.name + "(";
    for (uint32_t k = 0; k < launch->numOperands + launch->numParams; ++k)
      text += (k ? ", " : "") + std::string(".param .u64 p") + std::to_string(k);
    text += ")\n{ ret; }\n";
  }
  program.image.clear();
  if (!program.kernels.empty())
    program.image.assign(text.c_str(), text.c_str() + text.size() + 1);
}

} // namespace ds::rt::test

#endif // DS_UNITTESTS_RUNTIME_CUDA_TOCUDA_H
