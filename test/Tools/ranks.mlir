// The batch triple is solved for the ranks that the command line names, before anything else is done.
// RUN: not ds-opt %s --emit=plan --ranks 4 --set train_batch_size=8 --set train_micro_batch_size_per_gpu=3 2>&1 \
// RUN:   | FileCheck %s --check-prefix=TRIPLE
// RUN: ds-opt %s --print-config --ranks 4 --set train_batch_size=16 --set gradient_accumulation_steps=2 \
// RUN:   | FileCheck %s --check-prefix=SOLVED
// RUN: not ds-opt %s --emit=plan --ranks 0 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not ds-opt %s --emit=plan --ranks 4294967296 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not ds-opt %s --emit=plan --ranks 4 --set zero_optimization.stage=3 --set gradient_allreduce_op=sum 2>&1 \
// RUN:   | FileCheck %s --check-prefix=STAGE

// 8 / 3 / 4 rounds down to no accumulation at all.
// TRIPLE: train_batch_size = 8 is not train_micro_batch_size_per_gpu * gradient_accumulation_steps * data-parallel ranks = 3 * 0 * 4
// TRIPLE: hint: drop "train_batch_size": it becomes 12
// SOLVED: train_micro_batch_size_per_gpu = 2 {{.*}}derived: train_batch_size / ranks / accumulation
// NONE: --ranks expects a whole number from 1 to 4294967295, but got '0'
// MANY: --ranks expects a whole number from 1 to 4294967295, but got '4294967296'
// STAGE: gradients are not summed under stage 3: "gradient_allreduce_op" = "sum" (--set), "zero_optimization.stage" = 3 (--set)
ds.state @w role(parameter) trainable init(#ds.init<normal, 0.0, 0.02>) home(device) : tensor<8x6xf32>
func.func @forward(%x: tensor<4x8xf32> {ds.input = "x"}, %w: tensor<8x6xf32> {ds.state = @w}) -> tensor<f32> {
  %m = ds.matmul %x, %w : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
  %l = ds.reduce sum %m dims [0, 1] : tensor<4x6xf32> -> tensor<f32>
  return %l : tensor<f32>
}
