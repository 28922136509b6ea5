// The norm of a 16-bit gradient is summed from the gradient itself, and its update reads it: neither a wide copy nor the
// squares are stored.
// RUN: ds-opt %s --emit=ir --phase=scheduled --set train_micro_batch_size_per_gpu=4 --set bf16.enabled=true --set gradient_clipping=1.0 | FileCheck %s
//
// CHECK-LABEL: func.func @last
// CHECK: ds.call matmul(%{{.*}}, %[[GRADIENT:[0-9]+]]) writes [2] params [1, 0, 0, 0]
// CHECK-NOT: tensor<1024x1024xf32>
// CHECK: %[[BLOCKS:.*]] = ds.view %[[GRADIENT]] offset 0 {{.*}} -> !ds.buffer<tensor<64x16384xbf16>
// CHECK: ds.launch @[[SQUARES:[a-z_0-9]+]] ins(%[[BLOCKS]]) outs(%{{.*}}) {{.*}}tensor<64xf32>
// CHECK: ds.launch @[[UPDATE:[a-z_0-9]+]] ins(%[[GRADIENT]], {{.*}} extent 1048576
// CHECK: ds.kernel @[[SQUARES]] inputs 1 buffers [!ds.buffer<tensor<64x16384xbf16>
// CHECK: ds.kernel @[[UPDATE]] {{.*}}buffers [!ds.buffer<tensor<?xbf16>
ds.state @w role(parameter) trainable init(#ds.init<normal, 0.0, 0.02>) home(device) : tensor<1024x1024xf32>
func.func @forward(%x: tensor<4x1024xf32> {ds.input = "x"}, %w: tensor<1024x1024xf32> {ds.state = @w}) -> tensor<f32> {
  %m = ds.matmul %x, %w : tensor<4x1024xf32>, tensor<1024x1024xf32> -> tensor<4x1024xf32>
  %s = ds.mul %m, %m : tensor<4x1024xf32>
  %l = ds.reduce sum %s dims [0, 1] : tensor<4x1024xf32> -> tensor<f32>
  return %l : tensor<f32>
}
