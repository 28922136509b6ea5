//===- AddAdapters.cpp - Low-rank adapters beside linear layers ---------------------===//
//
// A linear layer is a product by a parameter, whoever wrote it: x W^T of nn.Linear, x W of GPT-2's Conv1D. So
// layers are found by what reads their weight, and what else reads it says why there can be no adapter. All
// is checked before anything is changed.
//
//   %y = ds.matmul %x, %w transpose_rhs         %y = ds.matmul %x, %w transpose_rhs
//                                         ->    %d = ds.matmul %x, %a transpose_rhs      rank columns
//                                               %u = ds.matmul %d, %b transpose_rhs
//                                               %s = ds.add %y, (%u * scale)
//
//===---------------------------------------------------------------------------===//
#include "ParameterNames.h"
#include "ds/Dialect/Emitter.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/TrainedParameters.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"

#include <cmath>

namespace mlir::ds {
#define GEN_PASS_DEF_ADDADAPTERS
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;
using ::ds::AdapterRequest;
using ::ds::AdapterRule;
using ::ds::AdapterSize;
using ::ds::Error;
using ::ds::ExitCode;

namespace {

/// A linear layer that gets an adapter.
struct Layer {
  StateOp weight;
  std::string name;
  AdapterSize size;
  SmallVector<MatmulOp> products; ///< one at least

  bool isTransposed() { return !products.front().getTransposeRhs(); }
  int64_t inputs() { return weight.getTensorType().getDimSize(isTransposed() ? 0 : 1); }
  int64_t outputs() { return weight.getTensorType().getDimSize(isTransposed() ? 1 : 0); }
};

} // namespace

//===----------------------------------------------------------------------===//
// Which layers are meant
//===----------------------------------------------------------------------===//

/// The layer whose weight is named so, as PEFT calls it; empty where the name is that of something else.
static StringRef layerOfWeight(StringRef name) { return name.consume_back(".weight") ? name : StringRef(); }

/// Whether `rule` means the layer, by its own name or that of its weight.
static bool means(const AdapterRule &rule, StringRef layer) {
  return rule.matches(layer.str()) || (!rule.isSuffix && rule.matches((layer + ".weight").str()));
}

/// The error that the rule's layer cannot have an adapter.
static Error refuse(const AdapterRequest &request, const AdapterRule &rule, StringRef layer,
                    const std::string &why, const std::string &hint) {
  return {ExitCode::Invalid,
          request.origin + " '" + rule.pattern + "': " + layer.str() + " cannot have an adapter: " + why,
          hint};
}

/// The argument of `forward` that holds `state`; null where it has none.
static BlockArgument argumentOf(func::FuncOp forward, StateOp state) {
  for (BlockArgument argument : forward.getArguments())
    if (forward.getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(), DsDialect::kStateAttr) ==
        FlatSymbolRefAttr::get(state))
      return argument;
  return {};
}

/// Whether `use` is the right factor of a plain product.
static bool isPlainProduct(OpOperand &use) {
  auto product = dyn_cast<MatmulOp>(use.getOwner());
  return product && use.getOperandNumber() == 1 && !product.getTransposeLhs() && !product.getAccumulator() &&
         product.getEpilogue() == Epilogue::None;
}

/// Finds the products of `layer`, and checks that it can have its adapter.
static ::ds::Status findProducts(Layer &layer, func::FuncOp forward, const AdapterRequest &request,
                                 const AdapterRule &rule) {
  const char *hint =
      "name linear layers alone, as '*_proj'; --phase model --emit ir shows what reads a weight";
  auto fail = [&](const std::string &why, const std::string &what) {
    return refuse(request, rule, layer.name, why, what);
  };
  BlockArgument value = argumentOf(forward, layer.weight);
  if (!value || value.use_empty())
    return fail("nothing reads its weight", hint);
  if (layer.weight.getShards())
    return fail("its weight is cut among ranks", "add adapters before the model is cut");
  for (OpOperand &use : value.getUses())
    if (!isPlainProduct(use))
      return fail("its weight is read by " + use.getOwner()->getName().getStringRef().str() +
                      (isa<EmbeddingOp>(use.getOwner()) ? ", as an embedding" : ", which is no linear layer"),
                  hint);
    else
      layer.products.push_back(cast<MatmulOp>(use.getOwner()));
  if (layer.weight.getTensorType().getRank() != 2)
    return fail("its weight has " + std::to_string(layer.weight.getTensorType().getRank()) +
                    " dimensions, not 2",
                hint);
  // The order of uses says nothing, and that of the products numbers their dropouts.
  llvm::sort(layer.products, [](MatmulOp a, MatmulOp b) { return a->isBeforeInBlock(b); });
  for (MatmulOp product : layer.products)
    if (product.getTransposeRhs() == layer.isTransposed())
      return fail("its weight is used both as it is and transposed", hint);
  const int64_t most = std::min(layer.inputs(), layer.outputs());
  if (layer.size.rank > most)
    return fail("rank " + std::to_string(layer.size.rank) + " is above its width of " + std::to_string(most),
                "give such layers a rank of at most " + std::to_string(most));
  return {};
}

/// Adds the layer whose weight is `state` to `layers` if a rule means it; notes in `isUsed` which rules do.
static ::ds::Status addLayer(StateOp state, func::FuncOp forward, const AdapterRequest &request,
                             SmallVectorImpl<Layer> &layers, SmallVectorImpl<bool> &isUsed) {
  const AdapterRule *first = nullptr;
  std::string name;
  for (auto [rule, used] : llvm::zip_equal(request.rules, isUsed))
    for (StringRef candidate : namesOf(state)) {
      StringRef layer = layerOfWeight(candidate);
      if (layer.empty() || !means(rule, layer))
        continue;
      used = true;
      if (!first)
        first = &rule, name = layer.str();
    }
  if (!first)
    return {};
  Layer layer{state, name, request.sizeOf(*first, name), {}};
  if (::ds::Status status = findProducts(layer, forward, request, *first); !status)
    return status;
  if (!layers.empty() && layers.front().isTransposed() != layer.isTransposed())
    return refuse(request, *first, name,
                  "its weight is laid out otherwise than that of " + layers.front().name,
                  "adapter_config.json has one fan_in_fan_out for all: name layers of one layout");
  layers.push_back(std::move(layer));
  return {};
}

/// The layers of all rules.
static ::ds::Result<SmallVector<Layer>> findLayers(ModuleOp module, func::FuncOp forward,
                                                   const AdapterRequest &request) {
  SmallVector<Layer> layers;
  SmallVector<bool> isUsed(request.rules.size(), false);
  std::vector<std::string> names;
  for (StateOp state : parametersOf(module)) {
    if (::ds::Status status = addLayer(state, forward, request, layers, isUsed); !status)
      return status.error();
    for (StringRef name : namesOf(state))
      if (!layerOfWeight(name).empty())
        names.push_back(layerOfWeight(name).str());
  }
  for (auto [rule, used] : llvm::zip_equal(request.rules, isUsed))
    if (!used)
      return Error{ExitCode::Invalid, request.origin + " '" + rule.pattern + "': no layer has such a name",
                   nearestNames(rule.isSuffix ? "*." + rule.pattern : rule.pattern, names)};
  return layers;
}

//===----------------------------------------------------------------------===//
// What is said of them to PEFT
//===----------------------------------------------------------------------===//

/// The part of a layer's name by which PEFT finds it and others like it.
static StringRef lastComponent(StringRef name) {
  return name.rsplit('.').second.empty() ? name : name.rsplit('.').second;
}

/// Names by which PEFT finds `layers`: their last components, where all layers that end so are meant. Where
/// others end with a whole name, PEFT gives those adapters as well, for which the files have no values and
/// which change nothing.
static std::vector<std::string> targetsOf(ModuleOp module, ArrayRef<Layer> layers) {
  llvm::StringSet<> meant, left; // names; last components of layers that are not meant
  for (const Layer &layer : layers)
    meant.insert(layer.name);
  for (StateOp state : parametersOf(module))
    for (StringRef name : namesOf(state))
      if (StringRef layer = name.rsplit('.').first; !meant.contains(layer))
        left.insert(lastComponent(layer));
  std::vector<std::string> targets;
  for (const Layer &layer : layers) {
    StringRef end = lastComponent(layer.name);
    std::string target = left.contains(end) ? layer.name : end.str();
    if (!llvm::is_contained(targets, target))
      targets.push_back(target);
  }
  return targets;
}

/// Keeps the description with the model.
static void describe(ModuleOp module, ArrayRef<Layer> layers, std::vector<std::string> targets,
                     const AdapterRequest &request) {
  ::ds::AdapterDescription adapters{{},
                                    std::move(targets),
                                    request.dropout,
                                    request.isRankStabilized,
                                    Layer(layers.front()).isTransposed()};
  for (const Layer &layer : layers)
    adapters.layers.push_back({layer.name, layer.size});
  FilesOp files = FilesOp::lookup(module);
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  if (!files)
    files = builder.create<FilesOp>(module.getLoc(), /*unused=*/ArrayAttr(), /*converts=*/false,
                                    /*config=*/StringAttr());
  files.setConfig(
      ::ds::withAdapterConfig(files.getConfig().value_or("").str(), ::ds::spellAdapterConfig(adapters)));
}

//===----------------------------------------------------------------------===//
// Their ops
//===----------------------------------------------------------------------===//

namespace {

/// Writes adapters into @forward.
class AdapterWriter {
public:
  AdapterWriter(ModuleOp module, func::FuncOp forward, const AdapterRequest &request)
      : module(module), forward(forward), request(request) {
    auto take = [&](uint64_t id) { nextId = std::max<int64_t>(nextId, id + 1); };
    forward.walk([&](DropoutOp op) { take(op.getId()); });
    forward.walk([&](RandomUniformOp op) { take(op.getId()); });
    forward.walk([&](AttentionOp op) {
      if (op.getDropoutId())
        take(*op.getDropoutId());
    });
  }

  void add(Layer &layer) {
    const double bound = 1 / std::sqrt(static_cast<double>(layer.inputs()));
    Type element = layer.weight.getTensorType().getElementType();
    OpBuilder builder = OpBuilder(layer.weight->getBlock(), ++Block::iterator(layer.weight));
    InitAttr drawn = InitAttr::get(builder.getContext(), InitKind::Uniform, -bound, bound),
             zero = InitAttr::get(builder.getContext(), InitKind::Zero, 0, 0);
    Value a = declare(builder, layer, ::ds::adapterNameA(layer.name), drawn,
                      RankedTensorType::get({layer.size.rank, layer.inputs()}, element));
    Value b = declare(builder, layer, ::ds::adapterNameB(layer.name), zero,
                      RankedTensorType::get({layer.outputs(), layer.size.rank}, element));
    for (MatmulOp product : layer.products)
      extend(product, a, b, request.scaleOf(layer.size));
  }

private:
  Value declare(OpBuilder &builder, Layer &layer, const std::string &name, InitAttr init,
                RankedTensorType type) {
    auto state = builder.create<StateOp>(layer.weight.getLoc(), name, Role::Parameter, /*trainable=*/true,
                                         /*aliases=*/ArrayAttr(), /*owner=*/FlatSymbolRefAttr(), init,
                                         layer.weight.getHome(), type);
    return addArgument(state);
  }

  Value addArgument(StateOp state) {
    Builder builder(state.getContext());
    const unsigned index = forward.getNumArguments();
    forward.insertArgument(
        index, state.getTensorType(),
        builder.getDictionaryAttr(builder.getNamedAttr(DsDialect::kStateAttr, FlatSymbolRefAttr::get(state))),
        state.getLoc());
    return forward.getArgument(index);
  }

  /// The (seed, counter) that random ops read.
  Value generator() {
    auto state =
        SymbolTable::lookupNearestSymbolFrom<StateOp>(module, StringAttr::get(module.getContext(), "rng"));
    if (state)
      if (BlockArgument argument = argumentOf(forward, state))
        return argument;
    OpBuilder builder(forward);
    auto type = RankedTensorType::get({2}, builder.getI64Type());
    if (!state)
      state = builder.create<StateOp>(module.getLoc(), "rng", Role::Scalar, /*trainable=*/false,
                                      /*aliases=*/ArrayAttr(), /*owner=*/FlatSymbolRefAttr(),
                                      InitAttr::get(builder.getContext(), InitKind::Zero, 0, 0),
                                      Space::Device, type);
    return addArgument(state);
  }

  /// Adds the adapter's part to what `product` gives.
  void extend(MatmulOp product, Value a, Value b, double scale) {
    OpBuilder builder(product->getBlock(), ++Block::iterator(product));
    Emitter emit(builder, product.getLoc());
    Value x = product.getLhs();
    if (request.dropout > 0)
      x = builder.create<DropoutOp>(product.getLoc(), x.getType(), x, generator(),
                                    builder.getF64FloatAttr(request.dropout),
                                    builder.getI64IntegerAttr(nextId++));
    Value down = builder.create<MatmulOp>(product.getLoc(), x, a, false, /*transposeRhs=*/true).getResult();
    Value up = builder.create<MatmulOp>(product.getLoc(), down, b, false, /*transposeRhs=*/true).getResult();
    Value result = product.getResult();
    Value addend = emit.scale(emit.convert(up, tensorType(result).getElementType()), scale);
    Value sum = emit.add(result, addend);
    result.replaceAllUsesExcept(sum, sum.getDefiningOp());
  }

  ModuleOp module;
  func::FuncOp forward;
  const AdapterRequest &request;
  int64_t nextId = 0; ///< of the random ops to come
};

} // namespace

::ds::Status mlir::ds::addAdapters(ModuleOp module, const AdapterRequest &request) {
  auto forward = module.lookupSymbol<func::FuncOp>("forward");
  if (!forward)
    return Error{ExitCode::Invalid, "expects a function @forward to add adapters to, but the module has none",
                 ""};
  ::ds::Result<SmallVector<Layer>> layers = findLayers(module, forward, request);
  if (!layers)
    return layers.error();
  std::vector<std::string> targets = targetsOf(module, *layers);
  for (StateOp parameter : parametersOf(module))
    parameter.setTrainable(false);
  AdapterWriter writer(module, forward, request);
  for (Layer &layer : *layers)
    writer.add(layer);
  describe(module, *layers, std::move(targets), request);
  return {};
}

namespace {
struct AddAdapters : mlir::ds::impl::AddAdaptersBase<AddAdapters> {
  using AddAdaptersBase::AddAdaptersBase;

  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Model)) ||
        failed(emitStatus(getOperation(), addRequested())))
      signalPassFailure();
  }

  ::ds::Status addRequested() {
    if (layers.empty() && folder.empty())
      return {};
    std::vector<std::string> specs(layers.begin(), layers.end());
    ::ds::Result<AdapterRequest> request =
        folder.empty() ? ::ds::parseAdapterRules(specs) : ::ds::readAdapterFolder(folder);
    return request ? addAdapters(getOperation(), *request) : request.error();
  }
};
} // namespace
