// Where cheap copies are not enough, products are made again from the values that blocks end with.
// RUN: ds-opt %s --ds-set-machine=memory=1 --ds-rematerialize-cheap | FileCheck %s
// RUN: ds-opt %s --ds-set-machine=memory=1 --ds-rematerialize-cheap --ds-inline-recompute | FileCheck %s --check-prefix=INLINE
// RUN: ds-opt %s --ds-rematerialize-cheap | FileCheck %s --check-prefix=FREE

ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64x64xf32>
ds.state @g role(gradient) slot("grad") owner(@w) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64x64xf32>
ds.state @loss role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>

// Three blocks of x + exp(x @ w): sums stay, products and what is made of them come again in backward.

// FREE-LABEL: @blocks
// FREE-NOT: ds.recompute

// CHECK-LABEL: @blocks
// CHECK: %[[S1:.*]] = ds.add %{{.*}} {ds.work = #ds.work<forward>}
// CHECK: %[[DY:.*]] = ds.mul {{.*}} {ds.work = #ds.work<backward>}
// CHECK: %[[AGAIN:.*]] = ds.recompute({{.*}}) after(%[[DY]] : tensor<512x64xf32>) {ds.work = #ds.work<recompute>}
// CHECK: %[[P:.*]] = ds.matmul
// CHECK: ds.yield %[[P]] : tensor<512x64xf32>
// CHECK: ds.exp %[[AGAIN]] {ds.work = #ds.work<recompute>}

// INLINE-LABEL: @blocks
// INLINE-NOT: ds.recompute
// INLINE: %[[DY:.*]] = ds.mul {{.*}} {ds.work = #ds.work<backward>}
// INLINE: %[[LATE:.*]] = ds.after %{{.*}}, %[[DY]]
// INLINE: ds.matmul %[[LATE]], {{.*}}work<recompute>
func.func @blocks(%x: tensor<512x64xf32> {ds.input = "x"}, %w: tensor<64x64xf32> {ds.state = @w}) -> (tensor<f32> {ds.state = @loss}, tensor<64x64xf32> {ds.state = @g}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
  %s0 = ds.matmul %x, %w {ds.work = #ds.work<forward>} : tensor<512x64xf32>, tensor<64x64xf32> -> tensor<512x64xf32>
  %p1 = ds.matmul %s0, %w {ds.work = #ds.work<forward>} : tensor<512x64xf32>, tensor<64x64xf32> -> tensor<512x64xf32>
  %e1 = ds.exp %p1 {ds.work = #ds.work<forward>} : tensor<512x64xf32>
  %s1 = ds.add %s0, %e1 {ds.work = #ds.work<forward>} : tensor<512x64xf32>
  %p2 = ds.matmul %s1, %w {ds.work = #ds.work<forward>} : tensor<512x64xf32>, tensor<64x64xf32> -> tensor<512x64xf32>
  %e2 = ds.exp %p2 {ds.work = #ds.work<forward>} : tensor<512x64xf32>
  %s2 = ds.add %s1, %e2 {ds.work = #ds.work<forward>} : tensor<512x64xf32>
  %p3 = ds.matmul %s2, %w {ds.work = #ds.work<forward>} : tensor<512x64xf32>, tensor<64x64xf32> -> tensor<512x64xf32>
  %e3 = ds.exp %p3 {ds.work = #ds.work<forward>} : tensor<512x64xf32>
  %s3 = ds.add %s2, %e3 {ds.work = #ds.work<forward>} : tensor<512x64xf32>
  %loss = ds.reduce sum %s3 dims [0, 1] {ds.work = #ds.work<forward>} : tensor<512x64xf32> -> tensor<f32>
  %d3 = ds.mul %s3, %s3 {ds.work = #ds.work<backward>} : tensor<512x64xf32>
  %q3 = ds.mul %d3, %e3 {ds.work = #ds.work<backward>} : tensor<512x64xf32>
  %g3 = ds.matmul %s2, %q3 transpose_lhs {ds.work = #ds.work<backward>} : tensor<512x64xf32>, tensor<512x64xf32> -> tensor<64x64xf32>
  %b3 = ds.matmul %q3, %w transpose_rhs {ds.work = #ds.work<backward>} : tensor<512x64xf32>, tensor<64x64xf32> -> tensor<512x64xf32>
  %q2 = ds.mul %b3, %e2 {ds.work = #ds.work<backward>} : tensor<512x64xf32>
  %g2 = ds.matmul %s1, %q2 transpose_lhs {ds.work = #ds.work<backward>} : tensor<512x64xf32>, tensor<512x64xf32> -> tensor<64x64xf32>
  %b2 = ds.matmul %q2, %w transpose_rhs {ds.work = #ds.work<backward>} : tensor<512x64xf32>, tensor<64x64xf32> -> tensor<512x64xf32>
  %q1 = ds.mul %b2, %e1 {ds.work = #ds.work<backward>} : tensor<512x64xf32>
  %g1 = ds.matmul %s0, %q1 transpose_lhs {ds.work = #ds.work<backward>} : tensor<512x64xf32>, tensor<512x64xf32> -> tensor<64x64xf32>
  %t = ds.add %g3, %g2 {ds.work = #ds.work<backward>} : tensor<64x64xf32>
  %g = ds.add %t, %g1 {ds.work = #ds.work<backward>} : tensor<64x64xf32>
  return %loss, %g : tensor<f32>, tensor<64x64xf32>
}
