//===- ScopedBuilder.cpp - Nested loops with a place to hoist to ---------------===//

#include "ScopedBuilder.h"

namespace mlir::ds::codegen {

ScopedBuilder::ScopedBuilder(OpBuilder &builder, Location loc, Block *entry) : b(builder), loc(loc) {
  b.setInsertionPointToEnd(entry);
  scopes.emplace_back();
}

static Block *addBlock(OpBuilder &b) {
  Region *region = b.getInsertionBlock()->getParent();
  region->push_back(new Block);
  return &region->back();
}

ScopedBuilder::Loop ScopedBuilder::beginLoop(Value from, Value to, Value step, ValueRange initial) {
  Block *header = addBlock(b), *body = addBlock(b), *exit = addBlock(b);
  SmallVector<Value> arguments{from};
  llvm::append_range(arguments, initial);
  scopes.back().end = b.create<LLVM::BrOp>(loc, arguments, header);
  Loop loop{header, exit, nullptr, step, {}};
  for (Value argument : arguments)
    header->addArgument(argument.getType(), loc);
  loop.iv = header->getArgument(0);
  llvm::append_range(loop.carried, header->getArguments().drop_front());
  b.setInsertionPointToEnd(header);
  Value more = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, loop.iv, to);
  b.create<LLVM::CondBrOp>(loc, more, body, exit);
  b.setInsertionPointToEnd(body);
  scopes.emplace_back();
  return loop;
}

SmallVector<Value> ScopedBuilder::endLoop(const Loop &loop, ValueRange next) {
  SmallVector<Value> arguments{b.create<arith::AddIOp>(loc, loop.iv, loop.step)};
  llvm::append_range(arguments, next);
  b.create<LLVM::BrOp>(loc, arguments, loop.header);
  scopes.pop_back();
  b.setInsertionPointToEnd(loop.exit);
  return loop.carried;
}

void ScopedBuilder::beginBlock() {
  Block *block = addBlock(b);
  scopes.back().end = b.create<LLVM::BrOp>(loc, block);
  b.setInsertionPointToEnd(block);
  scopes.emplace_back();
}

void ScopedBuilder::endBlock() { scopes.pop_back(); }

Block *ScopedBuilder::beginIf(Value condition) {
  Block *body = addBlock(b), *exit = addBlock(b);
  scopes.back().end = b.create<LLVM::CondBrOp>(loc, condition, body, exit);
  b.setInsertionPointToEnd(body);
  scopes.emplace_back();
  return exit;
}

void ScopedBuilder::endIf(Block *exit) {
  b.create<LLVM::BrOp>(loc, exit);
  scopes.pop_back();
  b.setInsertionPointToEnd(exit);
}

Value ScopedBuilder::lookup(const void *key, unsigned variant) const {
  for (const Scope &scope : scopes)
    if (auto it = scope.memo.find({key, variant}); it != scope.memo.end())
      return it->second;
  return nullptr;
}

void ScopedBuilder::remember(unsigned scope, const void *key, unsigned variant, Value value) {
  scopes[std::min<unsigned>(scope, depth())].memo[{key, variant}] = value;
}

} // namespace mlir::ds::codegen
