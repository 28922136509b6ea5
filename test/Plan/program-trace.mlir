// The planned step as a Chrome trace: a row for each stream with commands and layers, arrows from events to the commands
// that stand for them, and the bytes that are reserved. Four micro-steps, on two ranks under stage 3.
// RUN: ds-opt %s --emit=plan --ranks 2 --set train_micro_batch_size_per_gpu=32 --set gradient_accumulation_steps=4 --set zero_optimization.stage=3 --set zero_optimization.stage3_param_persistence_threshold=0 --plan-json %t.json --trace %t.trace -o %t.txt
// RUN: %python %S/Inputs/check_trace.py %t.trace %t.json | FileCheck %s
// RUN: ds-opt %s --emit=plan --set train_micro_batch_size_per_gpu=32 --plan-json %t.json --trace %t.trace -o %t.txt
// RUN: %python %S/Inputs/check_trace.py %t.trace %t.json | FileCheck %s --check-prefix=ONE
// RUN: %exits 6 ds-opt %s --emit=plan --trace %t.none/x.json -o %t.txt | FileCheck %s --check-prefix=NOWHERE
//
// CHECK: arrows: {{[1-9]}}
// CHECK: row compute: {{.*}}matmul h.0{{.*}}matmul h.1
// CHECK: row gather: all_gather
// CHECK: row reduce: {{.*}}reduce_scatter
// CHECK: step as predicted: True
//
// ONE: arrows: 0
// ONE: row compute: {{.*}}matmul h.0
// ONE-NOT: row
// ONE: step as predicted: True
// NOWHERE: x.json
ds.state @h.0.w role(parameter) trainable init(#ds.init<normal, 0.0, 0.02>) home(device) : tensor<64x64xf32>
ds.state @h.1.w role(parameter) trainable init(#ds.init<normal, 0.0, 0.02>) home(device) : tensor<64x64xf32>
func.func @forward(%x: tensor<32x64xf32> {ds.input = "x"}, %w0: tensor<64x64xf32> {ds.state = @h.0.w}, %w1: tensor<64x64xf32> {ds.state = @h.1.w}) -> tensor<f32> {
  %m0 = ds.matmul %x, %w0 : tensor<32x64xf32>, tensor<64x64xf32> -> tensor<32x64xf32> loc("h.0")
  %t0 = ds.tanh %m0 : tensor<32x64xf32> loc("h.0")
  %m1 = ds.matmul %t0, %w1 : tensor<32x64xf32>, tensor<64x64xf32> -> tensor<32x64xf32> loc("h.1")
  %l = ds.reduce sum %m1 dims [0, 1] : tensor<32x64xf32> -> tensor<f32> loc("loss")
  return %l : tensor<f32>
}
