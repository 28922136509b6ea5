//===- DecisionFields.h - The keys of ds.decisions -----------------------------------===//
#ifndef DS_LIB_DIALECT_DECISIONFIELDS_H
#define DS_LIB_DIALECT_DECISIONFIELDS_H

#include "ds/Dialect/Decisions.h"

namespace mlir::ds {

template <class Kind>
using Word = std::pair<StringLiteral, Kind>;

inline constexpr Word<HadBy> kHadBy[] = {{"kept", HadBy::Kept},
                                         {"host", HadBy::Host},
                                         {"recomputed", HadBy::Recomputed},
                                         {"gather_for_use", HadBy::GatherForUse},
                                         {"gather_for_segment", HadBy::GatherForSegment},
                                         {"gather_for_step", HadBy::GatherForStep},
                                         {"single_precision", HadBy::SinglePrecision},
                                         {"workspace", HadBy::Workspace},
                                         {"whole", HadBy::Whole},
                                         {"pieces", HadBy::Pieces}};
static_assert(std::size(kHadBy) == size_t(HadBy::Pieces) + 1);

inline constexpr Word<KeptFrom> kKeptFrom[] = {{"memory", KeptFrom::Memory},
                                               {"live_elements", KeptFrom::LiveElements},
                                               {"reuse_elements", KeptFrom::ReuseElements},
                                               {"choice", KeptFrom::Choice}};
static_assert(std::size(kKeptFrom) == size_t(KeptFrom::Choice) + 1);

inline constexpr Word<ChoiceOf> kChoices[] = {{"reduce_bucket", ChoiceOf::ReduceBucket},
                                              {"gather_bucket", ChoiceOf::GatherBucket},
                                              {"sub_group", ChoiceOf::SubGroup},
                                              {"parameter_threshold", ChoiceOf::ParameterThreshold},
                                              {"model_threshold", ChoiceOf::ModelThreshold},
                                              {"reduce_each_micro_step", ChoiceOf::ReduceEachMicroStep},
                                              {"reduce_once_per_step", ChoiceOf::ReduceOncePerStep},
                                              {"optimizer_place", ChoiceOf::OptimizerPlace},
                                              {"parameter_place", ChoiceOf::ParameterPlace},
                                              {"once_too_large", ChoiceOf::OnceTooLarge},
                                              {"once_slower", ChoiceOf::OnceSlower},
                                              {"nothing_on_host", ChoiceOf::NothingOnHost},
                                              {"no_products_recomputed", ChoiceOf::NoProductsRecomputed}};
static_assert(std::size(kChoices) == size_t(ChoiceOf::NoProductsRecomputed) + 1);

inline constexpr Word<SharedFor> kSharedFor[] = {{"parts", SharedFor::Parts},
                                                 {"asked", SharedFor::Asked},
                                                 {"indivisible", SharedFor::Indivisible},
                                                 {"cost", SharedFor::Cost}};
static_assert(std::size(kSharedFor) == size_t(SharedFor::Cost) + 1);

inline constexpr Word<Space> kSpaces[] = {
    {"device", Space::Device}, {"host", Space::Host}, {"nvme", Space::Nvme}};

inline constexpr Word<CollectiveKind> kCollectives[] = {{"all_gather", CollectiveKind::AllGather},
                                                        {"reduce_scatter", CollectiveKind::ReduceScatter},
                                                        {"all_reduce", CollectiveKind::AllReduce},
                                                        {"all_to_all", CollectiveKind::AllToAll}};

inline constexpr auto &wordsOf(HadBy) { return kHadBy; }
inline constexpr auto &wordsOf(KeptFrom) { return kKeptFrom; }
inline constexpr auto &wordsOf(ChoiceOf) { return kChoices; }
inline constexpr auto &wordsOf(SharedFor) { return kSharedFor; }
inline constexpr auto &wordsOf(Space) { return kSpaces; }
inline constexpr auto &wordsOf(CollectiveKind) { return kCollectives; }

/// A choice says what it is of.
void isAlwaysWritten(ChoiceOf);

template <class Visitor>
void visitFields(Visitor &visitor, ValueWay &way) {
  visitor("by", way.by);
  visitor("size", way.size);
}

template <class Visitor>
void visitFields(Visitor &visitor, RecomputedKind &kind) {
  visitor("what", kind.what);
  visitor("values", kind.values);
  visitor("saved_bytes", kind.savedBytes);
  visitor("more_seconds", kind.moreSeconds);
}

template <class Visitor>
void visitFields(Visitor &visitor, NextWay &next) {
  visitor("way", next.way);
  visitor("more_seconds", next.moreSeconds);
  visitor("more_bytes", next.moreBytes);
  visitor("refused", next.isRefused);
}

template <class Visitor>
void visitFields(Visitor &visitor, ResidentValue &value) {
  visitor("what", value.what);
  visitor("layer", value.layer);
  visitor("bytes", value.bytes);
  visitor("way", value.way);
  visitor("next", value.next);
}

template <class Visitor>
void visitFields(Visitor &visitor, LossOffer &pieces) {
  visitor("rows", pieces.rows);
  visitor("chunks", pieces.chunks);
  visitor("saved_bytes", pieces.savedBytes);
  visitor("more_seconds", pieces.moreSeconds);
}

template <class Visitor>
void visitFields(Visitor &visitor, LossResidency &loss) {
  visitor("rows", loss.rows);
  visitor("pieces", loss.pieces);
}

template <class Visitor>
void visitFields(Visitor &visitor, Residency &residency) {
  visitor("again", residency.again);
  visitor("largest", residency.largest);
  visitor("attention_in_f32", residency.attentionInF32);
  visitor("host_values", residency.hostValues);
  visitor("host_bytes", residency.hostBytes);
  visitor("fits", residency.fits);
  visitor("expected_bytes", residency.expectedBytes);
  visitor("expected_seconds", residency.expectedSeconds);
  visitor("bound_seconds", residency.boundSeconds);
  visitor("group_values", residency.groupValues);
  visitor("loss", residency.loss);
}

template <class Visitor>
void visitFields(Visitor &visitor, LossOutcome &outcome) {
  visitor("saved_bytes", outcome.savedBytes);
  visitor("more_seconds", outcome.moreSeconds);
  visitor("expected", outcome.isExpected);
  visitor("refused", outcome.isRefused);
}

template <class Visitor>
void visitFields(Visitor &visitor, LossSplit &split) {
  visitor("chunks", split.chunks);
  visitor("rows", split.rows);
  visitor("outcome", split.outcome);
}

template <class Visitor>
void visitFields(Visitor &visitor, RepeatedGathers &gathers) {
  visitor("for_backward", gathers.isForBackward);
  visitor("reason", gathers.reason);
  visitor("states", gathers.states);
  visitor("wanted", gathers.wanted);
  visitor("limit", gathers.limit);
}

template <class Visitor>
void visitFields(Visitor &visitor, KeptGathers &gathers) {
  visitor("function", gathers.function);
  visitor("kept_for_step", gathers.forStep);
  visitor("kept_for_step_bytes", gathers.forStepBytes);
  visitor("saved_gathers", gathers.savedGathers);
  visitor("kept", gathers.forBackward);
  visitor("kept_bytes", gathers.forBackwardBytes);
  visitor("again", gathers.again);
  visitor("exposed_seconds", gathers.exposedSeconds);
}

template <class Visitor>
void visitFields(Visitor &visitor, OpenChoice &choice) {
  visitor("of", choice.kind);
  visitor("elements", choice.elements);
  visitor("of_elements", choice.ofElements);
  visitor("part", choice.part);
  visitor("bytes", choice.bytes);
  visitor("limit_bytes", choice.limitBytes);
  visitor("collective", choice.collective);
  visitor("latency_seconds", choice.latencySeconds);
  visitor("bytes_per_second", choice.bytesPerSecond);
  visitor("share", choice.share);
  visitor("percent", choice.percent);
  visitor("space", choice.space);
}

template <class Visitor>
void visitFields(Visitor &visitor, SharedStates &states) {
  visitor("names", states.names);
  visitor("count", states.count);
  visitor("bytes", states.bytes);
  visitor("dim", states.dim);
  visitor("outer", states.outer);
  visitor("ratio", states.ratio);
  visitor("reason", states.reason);
}

template <class Visitor>
void visitFields(Visitor &visitor, SharedWork &work) {
  visitor("what", work.what);
  visitor("layers", work.layers);
  visitor("count", work.count);
  visitor("reason", work.reason);
}

template <class Visitor>
void visitFields(Visitor &visitor, SharedExchange &exchange) {
  visitor("kind", exchange.kind);
  visitor("maker", exchange.maker);
  visitor("layers", exchange.layers);
  visitor("reader", exchange.reader);
  visitor("forward", exchange.isForward);
  visitor("count", exchange.count);
  visitor("bytes", exchange.bytes);
}

template <class Visitor>
void visitFields(Visitor &visitor, SharedLayers &shared) {
  visitor("ranks", shared.ranks);
  visitor("parameters", shared.parameters);
  visitor("whole", shared.whole);
  visitor("exchanges", shared.exchanges);
}

template <class Visitor>
void visitFields(Visitor &visitor, Decisions &decisions) {
  visitor("loss_split", decisions.lossSplit);
  visitor("choices", decisions.choices);
  visitor("residency", decisions.residency);
  visitor("gathers", decisions.gathers);
  visitor("shared", decisions.shared);
}

} // namespace mlir::ds

#endif // DS_LIB_DIALECT_DECISIONFIELDS_H
