//===- ObjectCode.cpp - From arith and LLVM ops to relocatable code ------------===//
//
// Kernels come vectorised, unrolled and hoisted, so of LLVM's middle end only the passes that clean up after
// the emitter run: the loop and SLP vectorisers would cost more time than everything else together.
//
//===---------------------------------------------------------------------------===//

#include "ObjectCode.h"
#include "KernelLibrary.h"
#include "MathExpansion.h"
#include "NarrowFloats.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Scalar/Scalarizer.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

namespace mlir::ds::codegen {

static Error internal(const Twine &what) { return {ExitCode::Internal, what.str(), ""}; }

LogicalResult lowerToLLVMDialect(ModuleOp module, bool hasFma, bool hasF16c, bool hasLibm) {
  if (!hasLibm)
    expandDoubles(module);
  expandMath(module, hasFma);
  if (!hasF16c)
    expandHalf(module); // LLVM would call runtime functions that no library here has.
  MLIRContext *context = module.getContext();
  LowerToLLVMOptions options(context);
  LLVMTypeConverter types(context, options);
  LLVMConversionTarget target(*context);
  target.addLegalOp<ModuleOp>();
  RewritePatternSet patterns(context);
  arith::populateArithToLLVMConversionPatterns(types, patterns);
  populateMathToLLVMConversionPatterns(types, patterns);
  return applyPartialConversion(module, target, std::move(patterns));
}

void optimize(llvm::Module &module, llvm::TargetMachine &machine, bool scalarizes) {
  llvm::PassBuilder builder(&machine);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraphs;
  llvm::ModuleAnalysisManager modules;
  // The first registration counts, and the builder's own would have all of C's library.
  functions.registerPass(
      [&] { return llvm::TargetLibraryAnalysis(describeLibrary(machine.getTargetTriple())); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraphs, modules);
  llvm::FunctionPassManager passes;
  if (scalarizes) {
    llvm::ScalarizerPassOptions options;
    options.ScalarizeLoadStore = false;
    passes.addPass(llvm::ScalarizerPass(options));
  }
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/false));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  llvm::LoopPassManager loopPasses;
  loopPasses.addPass(llvm::LoopRotatePass());
  loopPasses.addPass(llvm::LICMPass(llvm::LICMOptions()));
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(loopPasses), /*UseMemorySSA=*/true));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/false));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  for (llvm::Function &function : module)
    if (!function.isDeclaration())
      passes.run(function, functions);
}

Result<SmallVector<char, 0>> makeObject(ModuleOp module, llvm::TargetMachine &machine) {
  const llvm::MCSubtargetInfo &processor = *machine.getMCSubtargetInfo();
  if (failed(lowerToLLVMDialect(module, processor.checkFeatures("+fma"), processor.checkFeatures("+f16c"))))
    return internal("generated kernels did not lower to LLVM");
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code =
      translateModuleToLLVMIR(module, context, "kernels", /*disableVerification=*/true);
  if (!code)
    return internal("generated kernels did not translate to LLVM IR");
  code->setDataLayout(machine.createDataLayout());
  code->setTargetTriple(machine.getTargetTriple().str());
  for (llvm::Function &function : *code)
    function.addFnAttr(llvm::Attribute::NoUnwind);
  optimize(*code, machine);
  SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager emitter;
  emitter.add(new llvm::TargetLibraryInfoWrapperPass(describeLibrary(machine.getTargetTriple())));
  if (machine.addPassesToEmitFile(emitter, stream, nullptr, llvm::CodeGenFileType::ObjectFile,
                                  /*DisableVerify=*/true))
    return internal("LLVM cannot write object files for " + machine.getTargetTriple().str());
  emitter.run(*code);
  return object;
}

} // namespace mlir::ds::codegen
