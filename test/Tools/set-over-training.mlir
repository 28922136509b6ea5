// A module that says itself how it is trained is trained so but for what --set asks for, and is told what that changes.
// RUN: ds-opt %s --set train_micro_batch_size_per_gpu=4 --set gradient_accumulation_steps=3 --set zero_optimization.reduce_bucket_size=4096 --emit=ir --phase=model 2>%t.notes | FileCheck %s
// RUN: FileCheck %s --check-prefix=NOTES --input-file %t.notes
// CHECK: ds.training = {
// CHECK-SAME: gradient_accumulation_steps = 3 : i64, gradient_clipping = 2.000000e+00 : f64
// CHECK-SAME: optimizer = {lr = 5.000000e-01 : f64, type = "sgd"}
// CHECK-SAME: zero_optimization = {reduce_bucket_size = 4096 : i64, stage = 1 : i64}
// NOTES: note: {{.*}}set-over-training.mlir: --set takes the place of what ds.training says of gradient_accumulation_steps, zero_optimization
//
// Of another optimizer nothing of the module's stays.
// RUN: ds-opt %s --set train_micro_batch_size_per_gpu=4 --set optimizer.type=Adagrad --emit=ir --phase=model 2>/dev/null | FileCheck %s --check-prefix=OTHER
// OTHER: optimizer = {
// OTHER-SAME: lr = 1.000000e-02
// OTHER-SAME: type = "adagrad"
//
// What asks for a default cannot be told from what does not ask.
// RUN: ds-opt %s --set train_micro_batch_size_per_gpu=4 --set gradient_clipping=1.0 --emit=ir --phase=model 2>&1 | FileCheck %s --check-prefix=DEFAULT
// DEFAULT: note: {{.*}}set-over-training.mlir: --set {{.*}}gradient_clipping{{.*}} asks for the default, and where ds.training says otherwise, that stays
// DEFAULT: gradient_clipping = 2.000000e+00 : f64
module attributes {ds.training = {gradient_accumulation_steps = 1 : i64, gradient_clipping = 2.0 : f64, optimizer = {type = "sgd", lr = 0.5 : f64}, world = 1 : i64, zero_optimization = {stage = 1 : i64}}} {
  ds.state @w role(parameter) trainable init(#ds.init<normal, 0.0, 0.02>) home(device) : tensor<8x6xf32>
  func.func @forward(%x: tensor<4x8xf32> {ds.input = "x"}, %w: tensor<8x6xf32> {ds.state = @w}) -> tensor<f32> {
    %m = ds.matmul %x, %w : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
    %s = ds.mul %m, %m : tensor<4x6xf32>
    %l = ds.reduce sum %s dims [0, 1] : tensor<4x6xf32> -> tensor<f32>
    return %l : tensor<f32>
  }
}
