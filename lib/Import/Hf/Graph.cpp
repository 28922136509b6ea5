//===- Graph.cpp - The module of a model while it is being built ----------------===//

#include "Graph.h"

using namespace mlir;
using namespace mlir::ds;
using namespace ::ds::hf;

//===----------------------------------------------------------------------===//
// Names of states
//===----------------------------------------------------------------------===//

void StateTable::declare(llvm::StringRef name, StateOp op, Value value) {
  State &state = states[name];
  state.op = op;
  state.value = value;
  order.push_back(name.str());
}

void StateTable::addBare(std::vector<std::string> &names, llvm::StringRef name) const {
  if (!prefix.empty() && name.consume_front(prefix))
    names.push_back(name.str());
}

void StateTable::ignore(llvm::StringRef name) {
  ignored.push_back(name.str());
  addBare(ignored, name);
}

static ArrayAttr stringArray(OpBuilder &builder, const std::vector<std::string> &texts) {
  return builder.getStrArrayAttr(llvm::to_vector_of<llvm::StringRef>(texts));
}

void StateTable::writeNames(OpBuilder &builder) {
  for (const std::string &name : order) {
    State &state = states[name];
    if (!state.aliases.empty())
      state.op.setAliasesAttr(stringArray(builder, state.aliases));
    if (!state.readNames.empty())
      state.op.setReadNamesAttr(stringArray(builder, state.readNames));
  }
}

ArrayAttr StateTable::ignoredNames(OpBuilder &builder) const {
  return ignored.empty() ? ArrayAttr() : stringArray(builder, ignored);
}

//===----------------------------------------------------------------------===//
// The module's beginning
//===----------------------------------------------------------------------===//

Graph::Graph(MLIRContext &context, std::string basePrefix)
    : builder(&context), stateBuilder(&context), states(std::move(basePrefix)) {
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

Value Graph::declare(llvm::StringRef name, Role role, bool trainable, RankedTensorType type, Init init) {
  auto op = stateBuilder.create<StateOp>(
      here(), name, role, trainable, /*aliases=*/ArrayAttr(), /*owner=*/FlatSymbolRefAttr(),
      InitAttr::get(builder.getContext(), init.kind, init.a, init.b), Space::Device, type);
  Value value = addArgument(type, DsDialect::kStateAttr, FlatSymbolRefAttr::get(op.getSymNameAttr()));
  states.declare(name, op, value);
  return value;
}

Value Graph::parameter(llvm::StringRef name, llvm::ArrayRef<int64_t> shape, Init init, bool trainable) {
  std::string full = path(name);
  if (Value known = existing(full))
    return known;
  auto type = RankedTensorType::get(shape, builder.getF32Type());
  int64_t elements = type.getNumElements();
  if (elements > kMaxElements && !error)
    error = Error{ExitCode::Invalid,
                  "the parameter '" + full + "' has " + std::to_string(elements) + " elements, but at most " +
                      std::to_string(kMaxElements) + " are supported",
                  "check the sizes in config.json"};
  numParameters += std::min(elements, kMaxElements);
  states.addBare(states[full].readNames, full);
  return declare(full, Role::Parameter, trainable, type, init);
}

void Graph::tie(llvm::StringRef owner, llvm::StringRef alias) {
  states[owner].aliases.push_back(alias.str());
}

void Graph::addReadName(llvm::StringRef owner, llvm::StringRef name) {
  std::vector<std::string> &names = states[owner].readNames;
  names.push_back(name.str());
  states.addBare(names, name);
}

void Graph::ignoreWeight(llvm::StringRef name) { states.ignore(path(name)); }

Value Graph::generator() {
  Value rng = existing("rng");
  return rng ? rng
             : declare("rng", Role::Scalar, /*trainable=*/false,
                       RankedTensorType::get({2}, builder.getI64Type()), Init::zeros());
}

Value Graph::dropout(Value x, double probability) {
  if (probability == 0)
    return x;
  return builder.create<DropoutOp>(here(), x.getType(), x, generator(), builder.getF64FloatAttr(probability),
                                   builder.getI64IntegerAttr(nextDropout()));
}

//===----------------------------------------------------------------------===//
// The module
//===----------------------------------------------------------------------===//

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
  states.writeNames(builder);
  // Checkpoints are published in 16 bits; what a step computes in is ds_config.json's decision.
  OpBuilder atStart = OpBuilder::atBlockBegin(module->getBody());
  atStart.create<FilesOp>(here(), states.ignoredNames(builder),
                          /*converts=*/true, /*config=*/StringAttr());
  return std::move(module);
}
