// A module that says itself how it is trained is trained so but for what --set asks for, and is told what that changes.
// RUN: ds-opt %s --set train_micro_batch_size_per_gpu=4 --set gradient_accumulation_steps=3 --set zero_optimization.reduce_bucket_size=4096 --emit=ir --phase=model 2>%t.notes | FileCheck %s
// RUN: FileCheck %s --check-prefix=NOTES --input-file %t.notes
// CHECK: ds.training = #ds.training<gradient_accumulation_steps = 3, gradient_clipping = 2.000000e+00,
// CHECK-SAME: optimizer = {type = sgd, lr = 5.000000e-01}
// CHECK-SAME: zero_optimization = {stage = 1, reduce_bucket_size = 4096}
// NOTES: note: {{.*}}set-over-training.mlir: --set takes the place of what ds.training says of gradient_accumulation_steps, zero_optimization
//
// Of another optimizer nothing of the module's stays.
// RUN: ds-opt %s --set train_micro_batch_size_per_gpu=4 --set optimizer.type=Adagrad --emit=ir --phase=model 2>/dev/null | FileCheck %s --check-prefix=OTHER
// OTHER: optimizer = {type = adagrad}
//
// What asks for a default gets it.
// RUN: ds-opt %s --set train_micro_batch_size_per_gpu=4 --set gradient_clipping=1.0 --set zero_optimization.stage=0 --emit=ir 2>&1 | FileCheck %s --check-prefix=DEFAULT
// DEFAULT: note: {{.*}}set-over-training.mlir: --set takes the place of what ds.training says of gradient_clipping, zero_optimization
// DEFAULT: #ds.training<gradient_clipping = 1.000000e+00, optimizer = {type = sgd, lr = 5.000000e-01}>
// RUN: ds-opt %s --set train_micro_batch_size_per_gpu=4 --set optimizer.type=AdamW --emit=ir 2>/dev/null | FileCheck %s --check-prefix=ADAMW
// ADAMW: #ds.training<gradient_clipping = 2.000000e+00, zero_optimization = {stage = 1}>
//
// Of the same optimizer the module's other parameters stay.
// RUN: sed 's/{type = sgd, lr = 0.5}/{type = adam, lr = 0.5, beta1 = 0.8, adam_w_mode = false}/' %s > %t.adam.mlir
// RUN: ds-opt %t.adam.mlir --set train_micro_batch_size_per_gpu=4 --set optimizer.type=AdamW --set optimizer.params.lr=0.001 --emit=ir 2>/dev/null | FileCheck %s --check-prefix=BETA
// BETA: optimizer = {beta1 = 8.000000e-01}
//
// A section that several keys make cannot be told apart by one that asks for its default.
// RUN: sed 's/optimizer = {type/precision = {compute = bf16}, optimizer = {type/' %s > %t.bf16.mlir
// RUN: %exits 3 ds-opt %t.bf16.mlir --set train_micro_batch_size_per_gpu=4 --set bf16.enabled=false --emit=ir 2>&1 | FileCheck %s --check-prefix=SHARED
// SHARED: error: --set bf16.enabled=false asks for the default, but ds.training of the model has another "precision", which several keys make together
// SHARED-NEXT: hint: give all of them in a configuration: --config takes the place of ds.training
// RUN: ds-opt %s --set train_micro_batch_size_per_gpu=4 --set bf16.enabled=false --emit=ir -o %t.same.mlir
//
// --set is enough to be heard, and passes that are named are not dropped beside it.
// RUN: ds-opt %s --set train_micro_batch_size_per_gpu=4 --set gradient_clipping=3.0 2>/dev/null | FileCheck %s --check-prefix=ALONE
// ALONE: gradient_clipping = 3.000000e+00
// RUN: %exits 2 ds-opt %s --set gradient_clipping=3.0 --canonicalize 2>&1 | FileCheck %s --check-prefix=PASSES
// RUN: %exits 2 ds-opt %s --emit=plan --cse 2>&1 | FileCheck %s --check-prefix=PASSES
// PASSES: error: passes that are named run on MLIR as it is, not with --config, --set, --emit or a question
module attributes {ds.training = #ds.training<gradient_accumulation_steps = 1, gradient_clipping = 2.0, optimizer = {type = sgd, lr = 0.5}, zero_optimization = {stage = 1}>} {
  ds.state @w role(parameter) trainable init(#ds.init<normal, 0.0, 0.02>) home(device) : tensor<8x6xf32>
  func.func @forward(%x: tensor<4x8xf32> {ds.input = "x"}, %w: tensor<8x6xf32> {ds.state = @w}) -> tensor<f32> {
    %m = ds.matmul %x, %w : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
    %s = ds.mul %m, %m : tensor<4x6xf32>
    %l = ds.reduce sum %s dims [0, 1] : tensor<4x6xf32> -> tensor<f32>
    return %l : tensor<f32>
  }
}
