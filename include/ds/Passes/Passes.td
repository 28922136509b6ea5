//===- Passes.td - The passes, in pipeline order --------------------*- tablegen -*-===//
#ifndef DS_PASSES
#define DS_PASSES

include "ds/Passes/ModelPasses.td"
include "ds/Passes/LossPasses.td"
include "ds/Passes/StagesPasses.td"
include "ds/Passes/StepPasses.td"
include "ds/Passes/ShardPasses.td"
include "ds/Passes/ResidentPasses.td"
include "ds/Passes/BufferPasses.td"
include "ds/Passes/ExchangePasses.td"
include "ds/Passes/StreamPasses.td"
include "ds/Passes/PlanPasses.td"

#endif // DS_PASSES
