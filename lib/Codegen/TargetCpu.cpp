//===- TargetCpu.cpp - The processor that kernels are made for -----------------===//

#include "ObjectCode.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include <mutex>

namespace mlir::ds::codegen {

/// Instruction sets that generated code may use; what a processor has beyond them is not asked of another
/// one.
static constexpr StringRef kFeatures[] = {
    "avx",        "avx2",         "avx512bf16", "avx512bitalg", "avx512bw",
    "avx512cd",   "avx512dq",     "avx512f",    "avx512fp16",   "avx512ifma",
    "avx512vbmi", "avx512vbmi2",  "avx512vl",   "avx512vnni",   "avx512vpopcntdq",
    "avxifma",    "avxneconvert", "avxvnni",    "avxvnniint16", "avxvnniint8",
    "bmi",        "bmi2",         "cx16",       "f16c",         "fma",
    "fma4",       "gfni",         "lzcnt",      "movbe",        "popcnt",
    "sse3",       "sse4.1",       "sse4.2",     "sse4a",        "ssse3",
    "tbm",        "xop"};

static const llvm::Target *findTarget(const std::string &triple, std::string &error) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  return llvm::TargetRegistry::lookupTarget(triple, error);
}

/// "+" before what the target has, "-" before what it lacks, so that the processor's name adds nothing.
static std::string featureString(ArrayRef<std::string> features) {
  std::string result;
  for (StringRef feature : kFeatures) {
    if (!result.empty())
      result += ',';
    result += (llvm::is_contained(features, feature) ? "+" : "-") + feature.str();
  }
  return result;
}

Result<std::unique_ptr<llvm::TargetMachine>> makeTargetMachine(const ds::TargetCpu &target) {
  std::string triple = llvm::sys::getDefaultTargetTriple(), error;
  const llvm::Target *backend = findTarget(triple, error);
  if (!backend)
    return Error{ExitCode::Internal, error, ""};
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  std::unique_ptr<llvm::TargetMachine> machine(backend->createTargetMachine(
      triple, target.cpu, featureString(target.features), options, llvm::Reloc::PIC_, llvm::CodeModel::Small,
      llvm::CodeGenOptLevel::Default));
  if (!machine)
    return Error{ExitCode::Internal, "LLVM has no machine for " + triple, ""};
  return machine;
}

unsigned preferredVectorBits(llvm::TargetMachine &machine) {
  llvm::LLVMContext context;
  llvm::Module module("width", context);
  auto *type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), false);
  auto *function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "width", module);
  auto info = machine.getTargetTransformInfo(*function);
  unsigned bits = info.getRegisterBitWidth(llvm::TargetTransformInfo::RGK_FixedWidthVector).getFixedValue();
  return std::clamp(bits, 128u, 512u);
}

} // namespace mlir::ds::codegen

namespace mlir::ds {

::ds::Result<TargetCpu> findTargetCpu(StringRef name) {
  std::string triple = llvm::sys::getDefaultTargetTriple(), error;
  const llvm::Target *backend = codegen::findTarget(triple, error);
  if (!backend)
    return ::ds::Error{::ds::ExitCode::Internal, error, ""};
  TargetCpu target;
  std::string hostFeatures;
  bool isHost = name.empty() || name == "host";
  if (isHost) {
    target.cpu = llvm::sys::getHostCPUName().str();
    for (const auto &feature : llvm::sys::getHostCPUFeatures())
      hostFeatures +=
          (hostFeatures.empty() ? "" : ",") + std::string(feature.second ? "+" : "-") + feature.first().str();
  } else {
    target.cpu = name.str();
  }
  std::unique_ptr<llvm::MCSubtargetInfo> info(backend->createMCSubtargetInfo(triple, "", ""));
  if (!info->isCPUStringValid(target.cpu)) {
    if (!isHost)
      return ::ds::Error{::ds::ExitCode::Usage, "--target-cpu: unknown processor '" + name.str() + "'",
                         "try x86-64-v3, or leave the option away for this machine"};
    target.cpu = "x86-64"; // A processor newer than LLVM: its features still count.
  }
  info.reset(backend->createMCSubtargetInfo(triple, target.cpu, hostFeatures));
  for (StringRef feature : codegen::kFeatures)
    if (info->checkFeatures(("+" + feature).str()))
      target.features.push_back(feature.str());
  return target;
}

} // namespace mlir::ds
