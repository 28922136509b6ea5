// RUN: ds-opt %s --ds-group-launches --split-input-file | FileCheck %s

// Launches in place of different sizes; what shares another scalar stays, and joins its like.
module attributes {ds.machine = #ds.machine<target = "cuda:sm_90">} {
  // CHECK: ds.kernel @scale inputs 2 buffers [{{.*}}] items 2 {
  ds.kernel @scale inputs 2 buffers [!ds.buffer<tensor<?xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>, !ds.buffer<tensor<?xf32>, [1], device>] {
  ^bb0(%x: tensor<?xf32>, %s: tensor<f32>):
    %ss = ds.broadcast %s dims [] : tensor<f32> -> tensor<?xf32>
    %y = ds.mul %x, %ss : tensor<?xf32>
    ds.yield %y : tensor<?xf32>
  }
  // CHECK-LABEL: @groups
  // CHECK-NEXT: ds.launch @scale ins(%arg0, %arg3, %arg1, %arg3) outs(%arg0, %arg1) extent 8, 4 on compute
  // CHECK-NEXT: ds.launch @scale ins(%arg2, %arg4) outs(%arg2) extent 8 on compute
  // CHECK-NEXT: return
  func.func @groups(%a: !ds.buffer<tensor<8xf32>, [1], device>, %b: !ds.buffer<tensor<4xf32>, [1], device>, %c: !ds.buffer<tensor<8xf32>, [1], device>, %s: !ds.buffer<tensor<f32>, [], device>, %t: !ds.buffer<tensor<f32>, [], device>) {
    ds.launch @scale ins(%a, %s) outs(%a) extent 8 on compute : (!ds.buffer<tensor<8xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>) -> !ds.buffer<tensor<8xf32>, [1], device>
    ds.launch @scale ins(%c, %t) outs(%c) extent 8 on compute : (!ds.buffer<tensor<8xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>) -> !ds.buffer<tensor<8xf32>, [1], device>
    ds.launch @scale ins(%b, %s) outs(%b) extent 4 on compute : (!ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>) -> !ds.buffer<tensor<4xf32>, [1], device>
    return
  }

  // The second reads what the first wrote, the third writes what the second read: they keep their order.
  // CHECK-LABEL: @keeps_what_depends
  // CHECK-NEXT: ds.launch @scale ins(%arg0, %arg3) outs(%arg0) extent 8 on compute
  // CHECK-NEXT: ds.launch @scale ins(%arg0, %arg3) outs(%arg2) extent 8 on compute
  // CHECK-NEXT: ds.launch @scale ins(%arg0, %arg3) outs(%arg0) extent 8 on compute
  // CHECK-NEXT: return
  func.func @keeps_what_depends(%a: !ds.buffer<tensor<8xf32>, [1], device>, %b: !ds.buffer<tensor<4xf32>, [1], device>, %c: !ds.buffer<tensor<8xf32>, [1], device>, %s: !ds.buffer<tensor<f32>, [], device>, %t: !ds.buffer<tensor<f32>, [], device>) {
    ds.launch @scale ins(%a, %s) outs(%a) extent 8 on compute : (!ds.buffer<tensor<8xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>) -> !ds.buffer<tensor<8xf32>, [1], device>
    ds.launch @scale ins(%a, %s) outs(%c) extent 8 on compute : (!ds.buffer<tensor<8xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>) -> !ds.buffer<tensor<8xf32>, [1], device>
    ds.launch @scale ins(%a, %s) outs(%a) extent 8 on compute : (!ds.buffer<tensor<8xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>) -> !ds.buffer<tensor<8xf32>, [1], device>
    return
  }

  // Not past a launch that reads what it writes, even one that is no item.
  // CHECK-LABEL: @keeps_behind_a_reader
  // CHECK: ds.launch @scale ins(%arg0, %arg3) outs(%arg0) extent 8 on compute
  // CHECK: ds.launch @scale ins(%arg2, %arg3) outs(%{{.*}}) extent 8 on compute
  // CHECK: ds.launch @scale ins(%arg2, %arg3) outs(%arg2) extent 8 on compute
  func.func @keeps_behind_a_reader(%a: !ds.buffer<tensor<8xf32>, [1], device>, %b: !ds.buffer<tensor<4xf32>, [1], device>, %c: !ds.buffer<tensor<8xf32>, [1], device>, %s: !ds.buffer<tensor<f32>, [], device>, %t: !ds.buffer<tensor<f32>, [], device>) {
    ds.launch @scale ins(%a, %s) outs(%a) extent 8 on compute : (!ds.buffer<tensor<8xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>) -> !ds.buffer<tensor<8xf32>, [1], device>
    %n = ds.alloc activations : !ds.buffer<tensor<8xf32>, [1], device>
    ds.launch @scale ins(%c, %s) outs(%n) extent 8 on compute : (!ds.buffer<tensor<8xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>) -> !ds.buffer<tensor<8xf32>, [1], device>
    ds.launch @scale ins(%c, %s) outs(%c) extent 8 on compute : (!ds.buffer<tensor<8xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>) -> !ds.buffer<tensor<8xf32>, [1], device>
    ds.call copy(%n, %a) writes [1] params [] on compute : !ds.buffer<tensor<8xf32>, [1], device>, !ds.buffer<tensor<8xf32>, [1], device>
    return
  }

  // Values that a step makes and drops are not made sooner.
  // CHECK-LABEL: @keeps_allocations
  // CHECK-COUNT-2: ds.launch @scale ins(%{{.*}}, %arg3) outs(%{{.*}}) extent 8 on compute
  func.func @keeps_allocations(%a: !ds.buffer<tensor<8xf32>, [1], device>, %b: !ds.buffer<tensor<4xf32>, [1], device>, %c: !ds.buffer<tensor<8xf32>, [1], device>, %s: !ds.buffer<tensor<f32>, [], device>, %t: !ds.buffer<tensor<f32>, [], device>) {
    %n = ds.alloc activations : !ds.buffer<tensor<8xf32>, [1], device>
    %m = ds.alloc activations : !ds.buffer<tensor<8xf32>, [1], device>
    ds.launch @scale ins(%a, %s) outs(%n) extent 8 on compute : (!ds.buffer<tensor<8xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>) -> !ds.buffer<tensor<8xf32>, [1], device>
    ds.launch @scale ins(%c, %s) outs(%m) extent 8 on compute : (!ds.buffer<tensor<8xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>) -> !ds.buffer<tensor<8xf32>, [1], device>
    ds.call copy(%n, %a) writes [1] params [] on compute : !ds.buffer<tensor<8xf32>, [1], device>, !ds.buffer<tensor<8xf32>, [1], device>
    ds.call copy(%m, %c) writes [1] params [] on compute : !ds.buffer<tensor<8xf32>, [1], device>, !ds.buffer<tensor<8xf32>, [1], device>
    return
  }

  // Another command stands between them.
  // CHECK-LABEL: @keeps_what_is_apart
  // CHECK-NEXT: ds.launch @scale ins(%arg0, %arg3) outs(%arg0) extent 8 on compute
  // CHECK-NEXT: ds.call fill
  // CHECK-NEXT: ds.launch @scale ins(%arg1, %arg3) outs(%arg1) extent 4 on compute
  func.func @keeps_what_is_apart(%a: !ds.buffer<tensor<8xf32>, [1], device>, %b: !ds.buffer<tensor<4xf32>, [1], device>, %c: !ds.buffer<tensor<8xf32>, [1], device>, %s: !ds.buffer<tensor<f32>, [], device>, %t: !ds.buffer<tensor<f32>, [], device>) {
    ds.launch @scale ins(%a, %s) outs(%a) extent 8 on compute : (!ds.buffer<tensor<8xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>) -> !ds.buffer<tensor<8xf32>, [1], device>
    ds.call fill(%c) writes [0] params [0.000000e+00] on compute : !ds.buffer<tensor<8xf32>, [1], device>
    ds.launch @scale ins(%b, %s) outs(%b) extent 4 on compute : (!ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>) -> !ds.buffer<tensor<4xf32>, [1], device>
    return
  }

  // A view is made where its launch goes.
  // CHECK-LABEL: @moves_views
  // CHECK: %[[LOW:.*]] = ds.view %arg0 offset 0
  // CHECK: %[[HIGH:.*]] = ds.view %arg0 offset 4
  // CHECK-NEXT: ds.launch @scale ins(%[[LOW]], %arg1, %[[HIGH]], %arg1) outs(%[[LOW]], %[[HIGH]]) extent 4, 4 on compute
  func.func @moves_views(%a: !ds.buffer<tensor<8xf32>, [1], device>, %s: !ds.buffer<tensor<f32>, [], device>) {
    %low = ds.view %a offset 0 : !ds.buffer<tensor<8xf32>, [1], device> -> !ds.buffer<tensor<4xf32>, [1], device>
    ds.launch @scale ins(%low, %s) outs(%low) extent 4 on compute : (!ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>) -> !ds.buffer<tensor<4xf32>, [1], device>
    %high = ds.view %a offset 4 : !ds.buffer<tensor<8xf32>, [1], device> -> !ds.buffer<tensor<4xf32>, [1], device>
    ds.launch @scale ins(%high, %s) outs(%high) extent 4 on compute : (!ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>) -> !ds.buffer<tensor<4xf32>, [1], device>
    return
  }
}

// -----

// On the CPU a launch costs next to nothing.
module attributes {ds.machine = #ds.machine<>} {
  ds.kernel @scale inputs 2 buffers [!ds.buffer<tensor<?xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>, !ds.buffer<tensor<?xf32>, [1], device>] {
  ^bb0(%x: tensor<?xf32>, %s: tensor<f32>):
    %ss = ds.broadcast %s dims [] : tensor<f32> -> tensor<?xf32>
    %y = ds.mul %x, %ss : tensor<?xf32>
    ds.yield %y : tensor<?xf32>
  }
  // CHECK-LABEL: @keeps_programs_for_the_cpu
  // CHECK-NEXT: ds.launch @scale ins(%arg0, %arg3) outs(%arg0) extent 8 on compute
  // CHECK-NEXT: ds.launch @scale ins(%arg1, %arg3) outs(%arg1) extent 4 on compute
  func.func @keeps_programs_for_the_cpu(%a: !ds.buffer<tensor<8xf32>, [1], device>, %b: !ds.buffer<tensor<4xf32>, [1], device>, %c: !ds.buffer<tensor<8xf32>, [1], device>, %s: !ds.buffer<tensor<f32>, [], device>, %t: !ds.buffer<tensor<f32>, [], device>) {
    ds.launch @scale ins(%a, %s) outs(%a) extent 8 on compute : (!ds.buffer<tensor<8xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>) -> !ds.buffer<tensor<8xf32>, [1], device>
    ds.launch @scale ins(%b, %s) outs(%b) extent 4 on compute : (!ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>) -> !ds.buffer<tensor<4xf32>, [1], device>
    return
  }
}

// -----

// What a step computes of single numbers.
!d = !ds.buffer<tensor<f64>, [], device>
!s = !ds.buffer<tensor<f32>, [], device>
!n = !ds.buffer<tensor<i64>, [], device>
!host = !ds.buffer<tensor<f64>, [], host>
!row = !ds.buffer<tensor<4xf32>, [1], device>
module attributes {ds.machine = #ds.machine<target = "cuda:sm_90">} {
  // CHECK-NOT: ds.kernel @rate
  ds.kernel @rate inputs 0 buffers [!d] {
    %0 = ds.constant dense<2.0> : tensor<f64>
    ds.yield %0 : tensor<f64>
  }
  ds.kernel @root inputs 1 buffers [!d, !s] {
  ^bb0(%x: tensor<f64>):
    %r = ds.sqrt %x : tensor<f64>
    %c = ds.convert %r : tensor<f64> -> tensor<f32>
    ds.yield %c : tensor<f32>
  }
  ds.kernel @next inputs 1 buffers [!n, !n] {
  ^bb0(%x: tensor<i64>):
    %one = ds.constant dense<1> : tensor<i64>
    %r = ds.add %x, %one : tensor<i64>
    ds.yield %r : tensor<i64>
  }
  ds.kernel @scaled inputs 2 buffers [!d, !n, !s] {
  ^bb0(%x: tensor<f64>, %n: tensor<i64>):
    %w = ds.convert %n : tensor<i64> -> tensor<f64>
    %r = ds.mul %x, %w : tensor<f64>
    %c = ds.convert %r : tensor<f64> -> tensor<f32>
    ds.yield %c : tensor<f32>
  }
  ds.kernel @host inputs 1 buffers [!host, !host] {
  ^bb0(%x: tensor<f64>):
    %r = ds.sqrt %x : tensor<f64>
    ds.yield %r : tensor<f64>
  }
  ds.kernel @row inputs 1 buffers [!s, !row] {
  ^bb0(%x: tensor<f32>):
    %r = ds.broadcast %x dims [] : tensor<f32> -> tensor<4xf32>
    ds.yield %r : tensor<4xf32>
  }

  // The rate, which nothing before needs, comes to its reader; the last reads the number as @next has
  // left it, in place.
  // CHECK-LABEL: @joins_scalars
  // CHECK-NEXT: ds.launch @row ins(%arg3) outs(%arg5)
  // CHECK-NEXT: ds.launch @root_next_rate_scaled ins(%arg0, %arg2) outs(%arg3, %arg2, %arg1, %arg4) on compute
  // CHECK-NEXT: return
  func.func @joins_scalars(%norm: !d, %rate: !d, %step: !n, %factor: !s, %lr: !s, %r: !row) {
    ds.launch @rate ins() outs(%rate) on compute : () -> !d
    ds.launch @row ins(%factor) outs(%r) on compute : (!s) -> !row
    ds.launch @root ins(%norm) outs(%factor) on compute : (!d) -> !s
    ds.launch @next ins(%step) outs(%step) on compute : (!n) -> !n
    ds.launch @scaled ins(%rate, %step) outs(%lr) on compute : (!d, !n) -> !s
    return
  }

  // CHECK-LABEL: @keeps_scalars_of_other_works
  // CHECK-NEXT: ds.launch @root ins
  // CHECK-NEXT: ds.launch @next ins
  func.func @keeps_scalars_of_other_works(%norm: !d, %step: !n, %factor: !s) {
    ds.launch @root ins(%norm) outs(%factor) on compute {ds.work = #ds.work<backward>} : (!d) -> !s
    ds.launch @next ins(%step) outs(%step) on compute {ds.work = #ds.work<update>} : (!n) -> !n
    return
  }

  // Another command, scalars of the host, more than scalars.
  // CHECK-LABEL: @keeps_scalars_apart
  // CHECK-NEXT: ds.launch @root ins
  // CHECK-NEXT: ds.call fill
  // CHECK-NEXT: ds.launch @next ins
  // CHECK-NEXT: ds.launch @host ins
  // CHECK-NEXT: ds.launch @root ins
  // CHECK-NEXT: ds.launch @row ins
  func.func @keeps_scalars_apart(%norm: !d, %step: !n, %factor: !s, %h: !host, %r: !row) {
    ds.launch @root ins(%norm) outs(%factor) on compute : (!d) -> !s
    ds.call fill(%r) writes [0] params [0.0 : f64] on compute : !row
    ds.launch @next ins(%step) outs(%step) on compute : (!n) -> !n
    ds.launch @host ins(%h) outs(%h) on compute : (!host) -> !host
    ds.launch @root ins(%norm) outs(%factor) on compute : (!d) -> !s
    ds.launch @row ins(%factor) outs(%r) on compute : (!s) -> !row
    return
  }

  // Of what the first writes the second reads another window.
  // CHECK-LABEL: @keeps_scalars_that_overlap
  // CHECK: ds.launch @root ins
  // CHECK: ds.launch @same ins
  func.func @keeps_scalars_that_overlap(%norm: !d, %out: !s) {
    %a = ds.alloc activations : !ds.buffer<tensor<2xf32>, [1], device>
    %v = ds.view %a offset 0 : !ds.buffer<tensor<2xf32>, [1], device> -> !s
    %w = ds.view %a offset 0 : !ds.buffer<tensor<2xf32>, [1], device> -> !s
    ds.launch @root ins(%norm) outs(%v) on compute : (!d) -> !s
    ds.launch @same ins(%w) outs(%out) on compute : (!s) -> !s
    return
  }
  ds.kernel @same inputs 1 buffers [!s, !s] {
  ^bb0(%x: tensor<f32>):
    %r = ds.sqrt %x : tensor<f32>
    ds.yield %r : tensor<f32>
  }
}
