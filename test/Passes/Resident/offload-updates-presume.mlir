// RUN: ds-opt %s --split-input-file --ds-offload-updates | FileCheck %s --check-prefix=REGIONS
// RUN: ds-opt %s --split-input-file --ds-offload-updates --ds-place-states | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-offload-updates --ds-place-states --ds-fuse-regions --ds-verify-fused -o %t.mlir

// Updates on the host read what is presumed there. The guess, made of the scale, has a region of its own: in that of the
// truth it would wait for the norm.
// REGIONS-LABEL: func.func @last
// REGIONS: ds.host
// REGIONS-NEXT: ^bb0(%[[S:.*]]: tensor<f32>):
// REGIONS-NEXT: ds.constant
// REGIONS-NEXT: ds.div
// REGIONS-NEXT: ds.yield
// REGIONS: ds.host
// REGIONS: ds.compare ne
// REGIONS: ds.presume
// REGIONS: ds.yield
// REGIONS: ds.host
// REGIONS: ds.mul
// REGIONS-NOT: ds.presume

// What only the device reads is the truth.
// CHECK-LABEL: func.func @last
// CHECK: ds.host
// CHECK: ds.host
// CHECK: ds.presume
// CHECK-LABEL: func.func @here
// CHECK: %[[TRUTH:.*]] = ds.mul {{.*}} : tensor<f32>
// CHECK-NOT: ds.presume
// CHECK: ds.broadcast %[[TRUTH]]
module attributes {ds.phase = #ds.phase<fused>} {
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x8xf32>
  ds.state @w.exp_avg role(moment) slot("exp_avg") owner(@w) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<4x8xf32>
  ds.state @scale role(scalar) init(#ds.init<constant, 2.0, 0.0>) home(device) : tensor<f32>
  func.func @last(%x: tensor<2x4xf32> {ds.input = "x"}, %d: tensor<2x8xf32> {ds.input = "d"},
                  %w: tensor<4x8xf32> {ds.state = @w}, %m: tensor<4x8xf32> {ds.state = @w.exp_avg},
                  %scale: tensor<f32> {ds.state = @scale})
      -> (tensor<4x8xf32> {ds.state = @w}, tensor<4x8xf32> {ds.state = @w.exp_avg})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %g = ds.matmul %x, %d transpose_lhs {ds.work = #ds.work<backward>} : tensor<2x4xf32>, tensor<2x8xf32> -> tensor<4x8xf32>
    %sum = ds.reduce sum %g dims [0, 1] {ds.work = #ds.work<update>} : tensor<4x8xf32> -> tensor<f32>
    %truth = ds.mul %sum, %scale {ds.work = #ds.work<update>} : tensor<f32>
    %one = ds.constant dense<1.0> : tensor<f32>
    %guess = ds.div %one, %scale {ds.work = #ds.work<update>} : tensor<f32>
    %wrong = ds.compare ne %truth, %guess {ds.work = #ds.work<update>} : tensor<f32>
    %p = ds.presume %truth as %guess unless %wrong {ds.work = #ds.work<update>} : tensor<f32>, tensor<i1>
    %r = ds.broadcast %p dims [] {ds.work = #ds.work<update>} : tensor<f32> -> tensor<4x8xf32>
    %h = ds.mul %g, %r {ds.work = #ds.work<update>} : tensor<4x8xf32>
    %n = ds.add %m, %h {ds.work = #ds.work<update>} : tensor<4x8xf32>
    %new = ds.sub %w, %n {ds.work = #ds.work<update>} : tensor<4x8xf32>
    return %new, %n : tensor<4x8xf32>, tensor<4x8xf32>
  }
  ds.schedule stage 0 [#ds.run<@last, first 0, count 1, gradients set, reduced true>]
}

// -----

module attributes {ds.phase = #ds.phase<fused>} {
  ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x8xf32>
  ds.state @scale role(scalar) init(#ds.init<constant, 2.0, 0.0>) home(device) : tensor<f32>
  func.func @here(%x: tensor<4x8xf32> {ds.input = "x"}, %v: tensor<4x8xf32> {ds.state = @v}, %scale: tensor<f32> {ds.state = @scale})
      -> (tensor<4x8xf32> {ds.state = @v}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %sum = ds.reduce sum %x dims [0, 1] {ds.work = #ds.work<update>} : tensor<4x8xf32> -> tensor<f32>
    %truth = ds.mul %sum, %scale {ds.work = #ds.work<update>} : tensor<f32>
    %wrong = ds.compare ne %truth, %scale {ds.work = #ds.work<update>} : tensor<f32>
    %p = ds.presume %truth as %scale unless %wrong {ds.work = #ds.work<update>} : tensor<f32>, tensor<i1>
    %r = ds.broadcast %p dims [] {ds.work = #ds.work<update>} : tensor<f32> -> tensor<4x8xf32>
    %k = ds.mul %v, %r {ds.work = #ds.work<update>} : tensor<4x8xf32>
    return %k : tensor<4x8xf32>
  }
  ds.schedule stage 0 [#ds.run<@here, first 0, count 1, gradients set, reduced true>]
}
