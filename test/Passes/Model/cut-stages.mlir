// RUN: ds-opt %s --split-input-file --pass-pipeline='builtin.module(ds-cut-stages{partition=type:^l remarks})' --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --pass-pipeline='builtin.module(ds-cut-stages{partition=uniform})' | FileCheck %s --check-prefix=UNIFORM
// RUN: ds-opt %s --split-input-file --pass-pipeline='builtin.module(ds-cut-stages{partition=parameters})' | FileCheck %s --check-prefix=PARAMETERS
// RUN: ds-opt %s --split-input-file --pass-pipeline='builtin.module(ds-cut-stages,ds-verify-stages)' -o %t.stages.mlir

// Three layers, an embedding by a table that the head shares, and a scale of positions, which each stage that reads it makes for
// itself. What layer 0 makes is read by layer 2 as well: the stage between passes it on, and its gradient back.

!h = tensor<2x4xf32>
// CHECK: module @stage_0 attributes {ds.training
// CHECK: ds.mesh @mesh axes [pp = 3] stages pp
// CHECK-DAG: ds.state @table role (parameter) trainable tied 2 init
// CHECK-DAG: ds.state @w0 role (parameter) trainable init
// CHECK-DAG: ds.state @unread
// CHECK: func.func @forward(%[[I:.*]]: tensor<2xi64> {ds.input = "i"}, %[[TABLE:.*]]: tensor<8x4xf32> {ds.state = @table}, %[[W0:.*]]: tensor<4x4xf32> {ds.state = @w0}) attributes {ds.segment = #ds.segment<forward>} {
// CHECK-NEXT: %[[TWO:.*]] = ds.constant
// CHECK-NEXT: %[[E:.*]] = ds.embedding
// CHECK-NEXT: %[[S0:.*]] = ds.mul %[[E]], %[[TWO]]
// CHECK-NEXT: %[[H0:.*]] = ds.matmul %[[S0]], %[[W0]]
// CHECK-NEXT: ds.send %[[H0]] to 1 along pp trained : tensor<2x4xf32>
// CHECK-NEXT: return
// CHECK: module @stage_1
// CHECK-NOT: ds.state @w0
// CHECK-NOT: ds.state @table
// CHECK: func.func @forward(%[[W1:.*]]: tensor<4x4xf32> {ds.state = @w1}) attributes {ds.segment = #ds.segment<stage 1, forward>} {
// CHECK-NEXT: %[[H0:.*]] = ds.recv from 0 along pp trained : tensor<2x4xf32>
// CHECK-NEXT: %[[TWO:.*]] = ds.constant
// CHECK-NEXT: %[[S1:.*]] = ds.mul %[[H0]], %[[TWO]]
// CHECK-NEXT: %[[H1:.*]] = ds.matmul %[[S1]], %[[W1]]
// CHECK-NEXT: ds.send %[[H0]] to 2 along pp trained
// CHECK-NEXT: ds.send %[[H1]] to 2 along pp trained
// CHECK: module @stage_2
// CHECK-DAG: ds.state @table role (parameter) trainable copy tied 0 init
// CHECK-DAG: ds.state @w2 role (parameter) trainable init
// CHECK: func.func @forward(%[[T:.*]]: tensor<2xi64> {ds.input = "t"}, %[[TABLE:.*]]: tensor<8x4xf32> {ds.state = @table}, %[[W2:.*]]: tensor<4x4xf32> {ds.state = @w2}) -> tensor<f32> attributes {ds.segment = #ds.segment<stage 2, forward>} {
// CHECK-NEXT: %[[H0:.*]] = ds.recv from 1 along pp trained
// CHECK-NEXT: %[[H1:.*]] = ds.recv from 1 along pp trained
// CHECK: %[[H2:.*]] = ds.matmul %{{.*}}, %[[W2]]
// CHECK: %[[Z:.*]] = ds.matmul %{{.*}}, %[[TABLE]] transpose_rhs
// CHECK: %[[LOSS:.*]], %{{.*}}, %{{.*}} = ds.cross_entropy %[[Z]], %[[T]]
// CHECK: return %[[LOSS]]
// No stage has more than two of the five: the embedding, three layers, and what is behind them.
// UNIFORM-LABEL: module @stage_0
// UNIFORM: ds.embedding
// UNIFORM-NOT: @w1
// UNIFORM-LABEL: module @stage_1
// UNIFORM: ds.matmul
// UNIFORM-LABEL: module @stage_2
// UNIFORM-NOT: @w0
// UNIFORM-NOT: @w1
// UNIFORM: ds.cross_entropy
// The table has as many elements as two layers, and counts where it is read first.
// PARAMETERS-LABEL: module @stage_0
// PARAMETERS-NOT: @w0
// PARAMETERS-LABEL: module @stage_1
// PARAMETERS: ds.state @w0
// PARAMETERS-LABEL: module @stage_2
module attributes {ds.training = #ds.training<gradient_accumulation_steps = 2>} {
  ds.mesh @mesh axes [pp = 3] stages pp
  ds.state @table role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x4xf32>
  ds.state @w0 role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x4xf32>
  ds.state @w1 role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x4xf32>
  ds.state @w2 role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x4xf32>
  ds.state @unread role(parameter) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<3xf32>
  // expected-remark@below {{stage 0 begins with emb}}
  // expected-remark@below {{stage 1 begins with l.1}}
  // expected-remark@below {{stage 2 begins with l.2}}
  func.func @forward(%i: tensor<2xi64> {ds.input = "i"}, %t: tensor<2xi64> {ds.input = "t"}, %table: tensor<8x4xf32> {ds.state = @table},
                     %w0: tensor<4x4xf32> {ds.state = @w0}, %w1: tensor<4x4xf32> {ds.state = @w1}, %w2: tensor<4x4xf32> {ds.state = @w2}) -> tensor<f32> {
    %two = ds.constant dense<2.0> : !h
    %e = ds.embedding %table, %i {ds.layer = #ds.layer<"emb">} : tensor<8x4xf32>, tensor<2xi64> -> !h
    %s0 = ds.mul %e, %two {ds.layer = #ds.layer<"l", 0>} : !h
    %h0 = ds.matmul %s0, %w0 {ds.layer = #ds.layer<"l", 0>} : !h, tensor<4x4xf32> -> !h
    %s1 = ds.mul %h0, %two {ds.layer = #ds.layer<"l", 1>} : !h
    %h1 = ds.matmul %s1, %w1 {ds.layer = #ds.layer<"l", 1>} : !h, tensor<4x4xf32> -> !h
    %s2 = ds.add %h0, %h1 {ds.layer = #ds.layer<"l", 2>} : !h
    %h2 = ds.matmul %s2, %w2 {ds.layer = #ds.layer<"l", 2>} : !h, tensor<4x4xf32> -> !h
    %z = ds.matmul %h2, %table transpose_rhs {ds.layer = #ds.layer<"head">} : !h, tensor<8x4xf32> -> tensor<2x8xf32>
    %loss, %lse, %count = ds.cross_entropy %z, %t ignore_index -100 : (tensor<2x8xf32>, tensor<2xi64>) -> (tensor<f32>, tensor<2xf32>, tensor<f32>)
    return %loss : tensor<f32>
  }
}

// -----

// What no parameter has part in gets no gradient: here the first layer is frozen.
// CHECK: ds.send %{{.*}} to 1 along pp : tensor<2x4xf32>
// CHECK: ds.recv from 0 along pp : tensor<2x4xf32>
module {
  ds.mesh @mesh axes [pp = 2] stages pp
  ds.state @w0 role(parameter) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x4xf32>
  ds.state @w1 role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x4xf32>
  // expected-remark@below {{stage 0 begins with l.0}}
  // expected-remark@below {{stage 1 begins with l.1}}
  func.func @forward(%x: tensor<2x4xf32> {ds.input = "x"}, %w0: tensor<4x4xf32> {ds.state = @w0}, %w1: tensor<4x4xf32> {ds.state = @w1}) -> tensor<f32> {
    %h0 = ds.matmul %x, %w0 {ds.layer = #ds.layer<"l", 0>} : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
    %h1 = ds.matmul %h0, %w1 {ds.layer = #ds.layer<"l", 1>} : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
    %loss = ds.reduce sum %h1 dims [0, 1] {ds.layer = #ds.layer<"l", 1>} : tensor<2x4xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// One stage is left as it is.
// CHECK: module {
// CHECK-NEXT: ds.mesh @mesh axes [dp = 2] samples dp
// CHECK-NEXT: func.func @forward
module {
  ds.mesh @mesh axes [dp = 2] samples dp
  func.func @forward(%x: tensor<f32> {ds.input = "x"}) -> tensor<f32> {
    return %x : tensor<f32>
  }
}
