//===- Graph.cpp - The module of a model while it is being built ----------------===//

#include "Graph.h"

using namespace mlir;
using namespace mlir::ds;
using namespace ::ds::hf;

Graph::Graph(MLIRContext &context, std::string basePrefix)
    : builder(&context), stateBuilder(&context), prefix(std::move(basePrefix)) {
  Location unknown = builder.getUnknownLoc();
  module = ModuleOp::create(unknown);
  (*module)->setAttr(DsDialect::kPhaseAttr, PhaseAttr::get(builder.getContext(), Phase::Model));
  builder.setInsertionPointToEnd(module->getBody());
  forward = builder.create<func::FuncOp>(unknown, "forward", builder.getFunctionType({}, {}));
  stateBuilder.setInsertionPoint(forward);
  block = forward.addEntryBlock();
  builder.setInsertionPointToEnd(block);
}

//===----------------------------------------------------------------------===//
// Names and places
//===----------------------------------------------------------------------===//

std::string Graph::path(llvm::StringRef name) const {
  return layers.empty() ? name.str() : layers.back() + "." + name.str();
}

std::string Graph::withoutPrefix(llvm::StringRef name) const {
  return !prefix.empty() && name.starts_with(prefix) ? name.drop_front(prefix.size()).str() : "";
}

Location Graph::here() {
  if (layers.empty())
    return builder.getUnknownLoc();
  return NameLoc::get(builder.getStringAttr(layers.back()));
}

Emitter Graph::ops() { return Emitter(builder, here()); }

//===----------------------------------------------------------------------===//
// Arguments and states
//===----------------------------------------------------------------------===//

Value Graph::addArgument(RankedTensorType type, llvm::StringRef attribute, Attribute value) {
  argumentAttrs.push_back(builder.getDictionaryAttr(builder.getNamedAttr(attribute, value)));
  return block->addArgument(type, here());
}

Value Graph::input(llvm::StringRef name, RankedTensorType type) {
  return addArgument(type, DsDialect::kInputAttr, builder.getStringAttr(name));
}

StateOp Graph::declare(llvm::StringRef name, Role role, bool trainable, RankedTensorType type, Init init) {
  return stateBuilder.create<StateOp>(
      here(), name, role, trainable, /*aliases=*/ArrayAttr(), /*owner=*/FlatSymbolRefAttr(),
      InitAttr::get(builder.getContext(), init.kind, init.a, init.b), Space::Device, type);
}

Value Graph::parameter(llvm::StringRef name, llvm::ArrayRef<int64_t> shape, Init init) {
  std::string full = path(name);
  State &state = states[full];
  if (state.value)
    return state.value;
  auto type = RankedTensorType::get(shape, builder.getF32Type());
  int64_t elements = type.getNumElements();
  if (elements > kMaxElements && !error)
    error = Error{ExitCode::Invalid,
                  "the parameter '" + full + "' has " + std::to_string(elements) + " elements, but at most " +
                      std::to_string(kMaxElements) + " are supported",
                  "check the sizes in config.json"};
  numParameters += std::min(elements, kMaxElements);
  state.op = declare(full, Role::Parameter, /*trainable=*/true, type, init);
  if (std::string bare = withoutPrefix(full); !bare.empty())
    state.readNames.push_back(bare);
  state.value = addArgument(type, DsDialect::kStateAttr, FlatSymbolRefAttr::get(state.op.getSymNameAttr()));
  order.push_back(full);
  return state.value;
}

void Graph::tie(llvm::StringRef owner, llvm::StringRef alias) {
  states[owner].aliases.push_back(alias.str());
}

void Graph::addReadName(llvm::StringRef owner, llvm::StringRef name) {
  State &state = states[owner];
  state.readNames.push_back(name.str());
  if (std::string bare = withoutPrefix(name); !bare.empty())
    state.readNames.push_back(bare);
}

void Graph::ignoreWeight(llvm::StringRef name) {
  std::string full = path(name);
  ignored.push_back(full);
  if (std::string bare = withoutPrefix(full); !bare.empty())
    ignored.push_back(bare);
}

Value Graph::dropout(Value x, double probability) {
  if (probability == 0)
    return x;
  State &rng = states["rng"];
  if (!rng.value) {
    auto type = RankedTensorType::get({2}, builder.getI64Type());
    rng.op = declare("rng", Role::Scalar, /*trainable=*/false, type, Init::zeros());
    rng.value = addArgument(type, DsDialect::kStateAttr, FlatSymbolRefAttr::get(rng.op.getSymNameAttr()));
    order.push_back("rng");
  }
  return builder.create<DropoutOp>(here(), x.getType(), x, rng.value, builder.getF64FloatAttr(probability),
                                   builder.getI64IntegerAttr(numDropouts++));
}

//===----------------------------------------------------------------------===//
// The module
//===----------------------------------------------------------------------===//

static ArrayAttr stringArray(OpBuilder &builder, const std::vector<std::string> &texts) {
  return builder.getStrArrayAttr(llvm::to_vector_of<llvm::StringRef>(texts));
}

::ds::Result<OwningOpRef<ModuleOp>> Graph::finish(Value loss) {
  if (!error && numParameters > kMaxParameters)
    error = Error{ExitCode::Invalid,
                  "the model has " + std::to_string(numParameters) + " parameters, but at most " +
                      std::to_string(kMaxParameters) + " are supported",
                  "check the sizes in config.json"};
  if (error)
    return *error;
  builder.create<func::ReturnOp>(here(), loss);
  forward.setFunctionType(builder.getFunctionType(block->getArgumentTypes(), loss.getType()));
  forward.setAllArgAttrs(argumentAttrs);
  for (const std::string &name : order) {
    State &state = states[name];
    if (!state.aliases.empty())
      state.op.setAliasesAttr(stringArray(builder, state.aliases));
    if (!state.readNames.empty())
      state.op.setReadNamesAttr(stringArray(builder, state.readNames));
  }
  // Checkpoints are published in 16 bits; what a step computes in is ds_config.json's decision.
  OpBuilder atStart = OpBuilder::atBlockBegin(module->getBody());
  atStart.create<FilesOp>(here(), ignored.empty() ? ArrayAttr() : stringArray(builder, ignored),
                          /*converts=*/true, /*config=*/StringAttr());
  return std::move(module);
}
