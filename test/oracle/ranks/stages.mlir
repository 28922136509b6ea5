// Two stages of a pipeline, two ranks each, in one module and as modules of their own: what one sends the other receives.
// REQUIRES: torch
// RUN: ds-opt %s --split-input-file --mlir-print-op-generic | %python %oracle/ranks/run.py | FileCheck %s

// Of sample s in micro-batch m, x is [100 m + 10 s, 100 m + 10 s + 1]. Stage 1 adds 3 x up and sends 10 x back, which stage 0 adds to its
// gradient, [0, 1] at first.
// CHECK:      rank 0 @forward0: [100, 101]
// Of sample 0: [0 + 0 + 1000, 1 + 10 + 1010]; of sample 1: [0 + 100 + 1100, 1 + 110 + 1110]. w is [0, 1] less both.
// CHECK-NEXT: rank 0 @backward0: [1000, 1021]
// CHECK-NEXT: rank 0 @update0: [-2200, -2241]
// CHECK-NEXT: rank 1 @forward0: [110, 111]
// CHECK-NEXT: rank 1 @backward0: [1200, 1221]
// CHECK-NEXT: rank 1 @update0: [-2200, -2241]
// The losses: 3 (0 + 1 + 100 + 101) = 606 and 3 (10 + 11 + 110 + 111) = 726.
// CHECK-NEXT: rank 2 @both1: [606]
// CHECK-NEXT: rank 2 @update1: [1332]
// CHECK-NEXT: rank 3 @both1: [726]
// CHECK-NEXT: rank 3 @update1: [1332]
// CHECK-NEXT: whole loss: [1332]
// CHECK-NEXT: whole w: [-2200, -2241]
// Parts are whole elements: of one as of two, each rank sends 2 * (2 - 1) * 8 bytes.
// CHECK-NEXT: sent by ds.all_reduce along dp: 64 bytes
// 16 bytes there and back for each of two micro-batches, by two pairs of ranks.
// CHECK-NEXT: sent by ds.send along pp: 128 bytes
module {
  ds.mesh @mesh axes [pp = 2, dp = 2] samples dp stages pp
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2xf64>
  ds.state @grad role(gradient) slot("grad") owner(@w) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2xf64>
  ds.state @loss role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f64>
  func.func @forward0(%x: tensor<2xf64> {ds.input = "x"}) -> tensor<2xf64> attributes {ds.segment = #ds.segment<forward>} {
    ds.send %x to 1 along pp : tensor<2xf64>
    return %x : tensor<2xf64>
  }
  func.func @backward0(%grad: tensor<2xf64> {ds.state = @grad}) -> (tensor<2xf64> {ds.state = @grad}) attributes {ds.segment = #ds.segment<backward>} {
    %d = ds.recv from 1 along pp : tensor<2xf64>
    %sum = ds.add %grad, %d : tensor<2xf64>
    return %sum : tensor<2xf64>
  }
  func.func @update0(%w: tensor<2xf64> {ds.state = @w}, %grad: tensor<2xf64> {ds.state = @grad}) -> (tensor<2xf64> {ds.state = @w}) attributes {ds.segment = #ds.segment<update>} {
    %sum = ds.all_reduce sum %grad along dp : tensor<2xf64>
    %new = ds.sub %w, %sum : tensor<2xf64>
    return %new : tensor<2xf64>
  }
  func.func @both1(%loss: tensor<f64> {ds.state = @loss}) -> (tensor<f64> {ds.state = @loss}) attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward, backward>} {
    %h = ds.recv from 0 along pp : tensor<2xf64>
    %three = ds.constant dense<3.0> : tensor<2xf64>
    %ten = ds.constant dense<10.0> : tensor<2xf64>
    %y = ds.mul %h, %three : tensor<2xf64>
    %l = ds.reduce sum %y dims [0] : tensor<2xf64> -> tensor<f64>
    %d = ds.mul %h, %ten : tensor<2xf64>
    ds.send %d to 0 along pp : tensor<2xf64>
    %total = ds.add %loss, %l : tensor<f64>
    return %total : tensor<f64>
  }
  func.func @update1(%loss: tensor<f64> {ds.state = @loss}) -> (tensor<f64> {ds.state = @loss}) attributes {ds.segment = #ds.segment<stage 1, chunk 0, update>} {
    %sum = ds.all_reduce sum %loss along dp : tensor<f64>
    return %sum : tensor<f64>
  }
  ds.schedule stage 0 [#ds.run<@forward0, first 0, count 1, gradients none>, #ds.run<@backward0, first 0, count 1, gradients set>, #ds.run<@forward0, first 1, count 1, gradients none>, #ds.run<@backward0, first 1, count 1, gradients add>, #ds.run<@update0, first 0, count 1, gradients none>]
  ds.schedule stage 1 [#ds.run<@both1, first 0, count 1, gradients set>, #ds.run<@both1, first 1, count 1, gradients add>, #ds.run<@update1, first 0, count 1, gradients none>]
}

// -----

// Stages as modules. Both begin with what they send: messages that stand side by side are one exchange, and none waits for the
// other to receive first. A sum along pp is one of all stages.
// CHECK-LABEL: module 1:
// CHECK-NEXT: rank 0 @first: [2], [3]
// CHECK-NEXT: rank 1 @second: [1], [3]
module {
  module {
    ds.mesh @mesh axes [pp = 2] stages pp
    func.func @first() -> (tensor<f64>, tensor<f64>) {
      %one = ds.constant dense<1.0> : tensor<f64>
      ds.send %one to 1 along pp : tensor<f64>
      %two = ds.recv from 1 along pp : tensor<f64>
      %sum = ds.all_reduce sum %one along pp : tensor<f64>
      return %two, %sum : tensor<f64>, tensor<f64>
    }
  }
  module {
    ds.mesh @mesh axes [pp = 2] stages pp
    func.func @second() -> (tensor<f64>, tensor<f64>) {
      %two = ds.constant dense<2.0> : tensor<f64>
      ds.send %two to 0 along pp : tensor<f64>
      %one = ds.recv from 0 along pp : tensor<f64>
      %sum = ds.all_reduce sum %two along pp : tensor<f64>
      return %one, %sum : tensor<f64>, tensor<f64>
    }
  }
}

// -----

// An axis is for stages by the mesh's set, whatever its name: along pp ranks read other samples here.
// CHECK-LABEL: module 2:
// CHECK-NEXT: rank 0 @s0: [0]
// CHECK-NEXT: rank 1 @s0: [10]
// CHECK-NEXT: rank 2 @s1: [0]
// CHECK-NEXT: rank 3 @s1: [10]
// CHECK:      sent by ds.send along depth: 16 bytes
module {
  ds.mesh @mesh axes [depth = 2, pp = 2] samples pp stages depth
  func.func @s0(%x: tensor<1xf64> {ds.input = "x"}) -> tensor<1xf64> attributes {ds.segment = #ds.segment<forward>} {
    ds.send %x to 1 along depth : tensor<1xf64>
    return %x : tensor<1xf64>
  }
  func.func @s1() -> tensor<1xf64> attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward>} {
    %h = ds.recv from 0 along depth : tensor<1xf64>
    return %h : tensor<1xf64>
  }
}

// -----

// A chain of three: the middle passes on what it received, so that its two messages are no exchange.
// CHECK-LABEL: module 3:
// CHECK-NEXT: rank 2 @s2: [7]
module {
  ds.mesh @mesh axes [pp = 3] stages pp
  func.func @s0() attributes {ds.segment = #ds.segment<forward>} {
    %x = ds.constant dense<7> : tensor<i64>
    ds.send %x to 1 along pp : tensor<i64>
    return
  }
  func.func @s1() attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward>} {
    %x = ds.recv from 0 along pp : tensor<i64>
    ds.send %x to 2 along pp : tensor<i64>
    return
  }
  func.func @s2() -> tensor<i64> attributes {ds.segment = #ds.segment<stage 2, chunk 0, forward>} {
    %x = ds.recv from 1 along pp : tensor<i64>
    return %x : tensor<i64>
  }
}

// -----

// Stages as modules are of the numbers that their segments say, in whatever order they stand.
// CHECK-LABEL: module 4:
// CHECK-NEXT: rank 0 @s0: [0]
// CHECK-NEXT: rank 1 @s1: [0]
module {
  module {
    ds.mesh @mesh axes [pp = 2] stages pp
    func.func @s1() -> tensor<1xf64> attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward>} {
      %h = ds.recv from 0 along pp : tensor<1xf64>
      return %h : tensor<1xf64>
    }
  }
  module {
    ds.mesh @mesh axes [pp = 2] stages pp
    func.func @s0(%x: tensor<1xf64> {ds.input = "x"}) -> tensor<1xf64> attributes {ds.segment = #ds.segment<forward>} {
      ds.send %x to 1 along pp : tensor<1xf64>
      return %x : tensor<1xf64>
    }
  }
}
