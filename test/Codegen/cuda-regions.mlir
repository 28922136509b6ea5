// What the PTX of a step looks like: whole vectors of 16 bytes, rows that meet by shuffles, rounding that the CPU has.
// RUN: ds-opt %s --target cuda:sm_90 --set optimizer.type=SGD --set train_micro_batch_size_per_gpu=64 \
// RUN:   --emit=program -o %t.dsx
// RUN: %python %oracle/ptx.py %t.dsx | FileCheck %s
// RUN: %python %oracle/ptx.py %t.dsx | FileCheck %s --check-prefix=NEVER --implicit-check-not=.local

// NEVER: .target sm_90
// CHECK: .visible .entry
// CHECK: .maxntid
// CHECK-DAG: ld.global.v4.f32
// CHECK-DAG: st.global.v4.f32
// CHECK-DAG: shfl.sync.bfly.b32
// CHECK-DAG: add.rn.f32
// CHECK-DAG: mul.rn.f32

ds.state @w role(parameter) trainable init(#ds.init<constant, 1.0, 0.0>) home(device) : tensor<768xf32>
func.func @forward(%x: tensor<64x768xf32> {ds.input = "x"}, %w: tensor<768xf32> {ds.state = @w}) -> tensor<f32> {
  %wide = ds.broadcast %w dims [1] : tensor<768xf32> -> tensor<64x768xf32>
  %y = ds.mul %x, %wide : tensor<64x768xf32>
  %z = ds.softmax %y dim 1 : tensor<64x768xf32>
  %square = ds.mul %z, %z : tensor<64x768xf32>
  %l = ds.reduce sum %square dims [0, 1] : tensor<64x768xf32> -> tensor<f32>
  return %l : tensor<f32>
}
