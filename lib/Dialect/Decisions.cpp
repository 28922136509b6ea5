//===- Decisions.cpp - What was left to the compiler, as an attribute ---------------===//
#include "DecisionFields.h"

#include "FieldText.h"

using namespace mlir;
using namespace mlir::ds;

using EmitError = function_ref<InFlightDiagnostic()>;

llvm::hash_code mlir::ds::hash_value(const Decisions &decisions) { return FieldHasher::hash(decisions); }

Decisions mlir::ds::getDecisions(ModuleOp module) {
  auto decisions = module->getAttrOfType<DecisionsAttr>(DsDialect::kDecisionsAttr);
  return decisions ? decisions.getDecisions() : Decisions();
}

void mlir::ds::setDecisions(ModuleOp module, const Decisions &decisions) {
  if (decisions == Decisions())
    module->removeAttr(DsDialect::kDecisionsAttr);
  else
    module->setAttr(DsDialect::kDecisionsAttr, DecisionsAttr::get(module.getContext(), decisions));
}

void mlir::ds::changeDecisions(ModuleOp module, function_ref<void(Decisions &)> change) {
  Decisions decisions = getDecisions(module);
  change(decisions);
  setDecisions(module, decisions);
}

void mlir::ds::addChoice(ModuleOp module, const OpenChoice &choice) {
  changeDecisions(module, [&](Decisions &decisions) { decisions.choices.push_back(choice); });
}

//===----------------------------------------------------------------------===//
// #ds.decisions
//===----------------------------------------------------------------------===//

Attribute DecisionsAttr::parse(AsmParser &parser, Type) {
  Decisions decisions;
  if (FieldReader(parser, DsDialect::kDecisionsAttr).parse(decisions, AsmParser::Delimiter::LessGreater))
    return {};
  return parser.getChecked<DecisionsAttr>(parser.getContext(), decisions);
}

void DecisionsAttr::print(AsmPrinter &printer) const {
  FieldPrinter(printer, getContext()).print(getDecisions(), '<', '>');
}

/// Rows of losses count from 1, and those that were chosen are offered.
static LogicalResult verifyLoss(EmitError fail, const LossResidency &loss) {
  for (const LossOffer &pieces : loss.pieces)
    if (pieces.rows < 1 || pieces.chunks < 1)
      return fail() << "at least 1 for rows and chunks of residency.loss.pieces, but got " << pieces.rows
                    << " and " << pieces.chunks;
  auto isChosen = [&](const LossOffer &pieces) { return pieces.rows == loss.rows; };
  if (loss.rows && llvm::none_of(loss.pieces, isChosen))
    return fail() << "the rows of pieces for residency.loss.rows, but got " << *loss.rows;
  return success();
}

LogicalResult DecisionsAttr::verify(EmitError emitError, Decisions decisions) {
  auto fail = [&] { return emitError() << DsDialect::kDecisionsAttr << " expects "; };
  if (decisions.lossSplit && (decisions.lossSplit->chunks < 1 || decisions.lossSplit->rows < 1))
    return fail() << "at least 1 for chunks and rows of loss_split, but got " << decisions.lossSplit->chunks
                  << " and " << decisions.lossSplit->rows;
  if (decisions.residency && decisions.residency->loss)
    return verifyLoss(fail, *decisions.residency->loss);
  return success();
}
