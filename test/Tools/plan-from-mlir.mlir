// MLIR needs no configuration: its arguments say the micro-batch, and AdamW is what DeepSpeed takes by default.
// RUN: ds-opt %s --emit=plan | FileCheck %s --check-prefix=PLAN
// RUN: ds-opt %s --emit=plan --plan-json - -o %t.txt | FileCheck %s --check-prefix=JSON
// RUN: not ds-opt %s --emit=plan --set train_micro_batch_size_per_gpu=3 2>&1 | FileCheck %s --check-prefix=BATCH
// RUN: not ds-opt %s --emit=plan --memory 512 2>&1 | FileCheck %s --check-prefix=SMALL

// 8 * 6 weights of 4 bytes = 192, two moments of that = 384, and the scalars.
// PLAN: 48 parameters
// PLAN: parameters {{.*}} 192 bytes
// PLAN: fits:
// JSON: "schema":
// JSON: "parameters": 192
// BATCH: dimension 0 is 4, but the configured micro-batch is 3
// SMALL: 512
// SMALL: hint:
ds.state @w role(parameter) trainable init(#ds.init<normal, 0.0, 0.02>) home(device) : tensor<8x6xf32>
func.func @forward(%x: tensor<4x8xf32> {ds.input = "x"}, %w: tensor<8x6xf32> {ds.state = @w}) -> tensor<f32> {
  %m = ds.matmul %x, %w : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
  %s = ds.mul %m, %m : tensor<4x6xf32>
  %l = ds.reduce sum %s dims [0, 1] : tensor<4x6xf32> -> tensor<f32>
  return %l : tensor<f32>
}
