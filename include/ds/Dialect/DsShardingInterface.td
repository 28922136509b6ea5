//===- DsShardingInterface.td - How an op can be cut among ranks ----*- tablegen -*-===//
#ifndef DS_SHARDING_INTERFACE
#define DS_SHARDING_INTERFACE

include "mlir/IR/OpBase.td"

def ShardingOpInterface : OpInterface<"ShardingOpInterface"> {
  let cppNamespace = "::mlir::ds";
  let description = [{
    An op that ranks can divide. It answers in factors: numbers that its dimensions are made of, along each of which it
    can be cut (Sharding.h). What each op answers stands in one table, lib/Dialect/Sharding.cpp, which attaches the
    interface; an op without it runs whole on every rank.
  }];
  let methods = [
    InterfaceMethod<"The factors of the op, and which of its operands may be addends together.",
      "::mlir::ds::ShardingRule", "getShardingRule", (ins)>,
    InterfaceMethod<[{
      Builds at the insertion point what one rank does where the op is cut as `part` says. `operands` are what the rank
      has of the op's, `types` what it is to have of the results. Returns one value per result.
    }], "::llvm::SmallVector<::mlir::Value>", "localize",
    (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands, "::mlir::TypeRange":$types,
         "const ::mlir::ds::LocalPart &":$part)>
  ];
}

#endif // DS_SHARDING_INTERFACE
