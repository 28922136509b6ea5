//===- ChooseProducts.cpp - Gives products the form that was measured fastest ----===//
//
// Which form of a product is fastest only a clock can say, and a clock says something else each time. So it
// is asked once, by `ds-run --tune` on the machine of the program, and its answers come in a file: equal
// files give equal programs, and every rank and every run of one makes its products alike. A choice is found
// by what a product recomputed has in common with the first; both then have the same bits.
//
//===---------------------------------------------------------------------------===//
#include "Support/RuntimeCall.h"
#include "ds/Dialect/Machine.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/ProductChoices.h"
#include "ds/Runtime/Onednn/ProductTuning.h"
#include "ds/Runtime/Program/Library.h"

namespace mlir::ds {
#define GEN_PASS_DEF_CHOOSEPRODUCTS
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;
namespace rt = ::ds::rt;

/// The product of a matmul call, as the runtime sees it.
static rt::MatmulDesc describe(const RuntimeCall &call) {
  return rt::describeMatmul(call.operand(0), call.operand(1), call.operand(2),
                            rt::matmulExtras(call.operands(), {call.params.data(), call.params.size()}).bias,
                            call.params.data());
}

/// The calls of `op` that multiply on the cores of the compute stream, with something to compute.
static SmallVector<CallOp> productsOf(Operation *op) {
  SmallVector<CallOp> calls;
  op->walk([&](CallOp call) {
    if (call.getCallee() == rt::LibraryFn::Matmul && call.getStream() == StreamKind::Compute &&
        cast<BufferType>(call.getBuffers()[2].getType()).getTensor().getNumElements() > 0)
      calls.push_back(call);
  });
  return calls;
}

/// Appends the form's params, and notes the measured time.
static void choose(CallOp call, const rt::TunedProduct &product) {
  Builder builder(call.getContext());
  call.setMeasuredSeconds(APFloat(product.seconds));
  if (product.form == rt::ProductForm{})
    return;
  SmallVector<Attribute> params(call.getParams().begin(), call.getParams().end());
  for (int64_t param : rt::paramsOf(product.form))
    params.push_back(builder.getI64IntegerAttr(param));
  call.setParamsAttr(builder.getArrayAttr(params));
}

std::vector<ProductChoice> mlir::ds::productChoices(ModuleOp module) {
  std::vector<ProductChoice> choices;
  for (CallOp call : productsOf(module)) {
    std::optional<APFloat> seconds = call.getMeasuredSeconds();
    if (!seconds)
      continue;
    const RuntimeCall product(call);
    std::string key = rt::productKey(describe(product));
    auto known = llvm::find_if(choices, [&](const ProductChoice &one) { return one.product == key; });
    if (known == choices.end())
      choices.push_back({std::move(key),
                         rt::spell(rt::formOf({product.params.data(), product.params.size()})), 1,
                         seconds->convertToDouble()});
    else
      ++known->calls;
  }
  return choices;
}

namespace {
struct ChooseProducts : mlir::ds::impl::ChooseProductsBase<ChooseProducts> {
  using ChooseProductsBase::ChooseProductsBase;

  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Scheduled)))
      return signalPassFailure();
    if (isForCuda(getOperation()) || this->tuning.empty())
      return;
    ::ds::Result<rt::ProductTuning> tuning = rt::readTuning(this->tuning);
    if (!tuning) {
      getOperation().emitError("expects a tuning of products: ") << tuning.error().message;
      return signalPassFailure();
    }
    if (const int64_t threads = getMachine(getOperation()).threads; int64_t(tuning->threads) != threads) {
      getOperation().emitError("expects a tuning for ")
          << threads << " threads, but '" << StringRef(this->tuning) << "' is for " << tuning->threads;
      return signalPassFailure();
    }
    for (CallOp call : productsOf(getOperation())) {
      const RuntimeCall product(call);
      const rt::MatmulDesc desc = describe(product);
      auto found = tuning->products.find(rt::productKey(desc));
      if (found == tuning->products.end() || product.params.size() != rt::kMatmulParams)
        continue;
      if (std::string why = rt::whyNot(desc, found->second.form); !why.empty()) {
        call.emitOpError("cannot be made as the tuning says: ") << why;
        return signalPassFailure();
      }
      choose(call, found->second);
    }
  }
};
} // namespace
