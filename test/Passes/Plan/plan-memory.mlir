// RUN: ds-opt %s --ds-plan-memory --ds-verify-planned --split-input-file | FileCheck %s

// Nothing to place, nothing placed.
// CHECK: module attributes {ds.phase = #ds.phase<planned>}
// CHECK: ds.arena device bytes 0 lower_bound 0
module {
}

// -----

// One segment. E1: every state, input and allocation; E2: %a is read after %b is made, so they lie apart; %c comes
// when %a is dead and takes its place; E3: 64 (state) + 64 (input) + 2 * 64 = 256, and no order could do with less.
// CHECK: ds.arena device bytes 256 lower_bound 256
// CHECK: ds.state @w {{.*}} {offset = [[W:[0-9]+]] : i64}
// CHECK-LABEL: @last
// CHECK-SAME: {ds.state = @w}
// CHECK-SAME: {ds.input = "x", ds.offset = [[$X:[0-9]+]] : i64}
// CHECK: ds.alloc activations offset [[$A:[0-9]+]]
// CHECK: ds.alloc activations offset [[B:[0-9]+]]
// CHECK: ds.alloc activations offset [[$A]] :
module {
  ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<16xf32>
  func.func @last(%w: !ds.buffer<tensor<16xf32>, [1], device> {ds.state = @w}, %x: !ds.buffer<tensor<16xf32>, [1], device> {ds.input = "x"}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %a = ds.alloc activations : !ds.buffer<tensor<16xf32>, [1], device>
    ds.call copy(%x, %a) writes [1] params [] on compute : !ds.buffer<tensor<16xf32>, [1], device>, !ds.buffer<tensor<16xf32>, [1], device>
    %b = ds.alloc activations : !ds.buffer<tensor<16xf32>, [1], device>
    ds.call copy(%a, %b) writes [1] params [] on compute : !ds.buffer<tensor<16xf32>, [1], device>, !ds.buffer<tensor<16xf32>, [1], device>
    %c = ds.alloc activations : !ds.buffer<tensor<16xf32>, [1], device>
    ds.call copy(%b, %c) writes [1] params [] on compute : !ds.buffer<tensor<16xf32>, [1], device>, !ds.buffer<tensor<16xf32>, [1], device>
    ds.call copy(%c, %w) writes [1] params [] on compute : !ds.buffer<tensor<16xf32>, [1], device>, !ds.buffer<tensor<16xf32>, [1], device>
    return
  }
}

// -----

// A view keeps its allocation alive: %a until the copy from %v, though %a itself is read before %b is made.
// CHECK: ds.arena device bytes 192 lower_bound 192
// CHECK-LABEL: @views
// CHECK: ds.alloc activations offset [[$A:[0-9]+]]
// CHECK: ds.alloc activations offset [[B:[0-9]+]]
// CHECK-NOT: offset [[$A]] : !ds.buffer<tensor<16
module {
  func.func @views(%x: !ds.buffer<tensor<16xf32>, [1], device> {ds.input = "x"}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %a = ds.alloc activations : !ds.buffer<tensor<16xf32>, [1], device>
    ds.call copy(%x, %a) writes [1] params [] on compute : !ds.buffer<tensor<16xf32>, [1], device>, !ds.buffer<tensor<16xf32>, [1], device>
    %v = ds.view %a offset 4 : !ds.buffer<tensor<16xf32>, [1], device> -> !ds.buffer<tensor<4xf32>, [1], device>
    %b = ds.alloc activations : !ds.buffer<tensor<4xf32>, [1], device>
    ds.call fill(%b) writes [0] params [0.0 : f64] on compute : !ds.buffer<tensor<4xf32>, [1], device>
    ds.call copy(%v, %b) writes [1] params [] on compute : !ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<4xf32>, [1], device>
    return
  }
}

// -----

// Two segments that never run at once share what is left beside the state and the input that both see: 64 + 64 + the
// larger of 128 and 256 = 384. The input has one place in both.
// CHECK: ds.arena device bytes 384 lower_bound 384
// CHECK: ds.state @w {{.*}} {offset = [[W:[0-9]+]] : i64}
// CHECK-LABEL: @first
// CHECK-SAME: {ds.input = "x", ds.offset = [[$X:[0-9]+]] : i64}
// CHECK: ds.alloc activations offset [[$A:[0-9]+]]
// CHECK-LABEL: @last
// CHECK-SAME: {ds.input = "x", ds.offset = [[$X]] : i64}
// CHECK: ds.alloc activations offset [[$A]]
module {
  ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<16xf32>
  func.func @first(%x: !ds.buffer<tensor<16xf32>, [1], device> {ds.input = "x"}) attributes {ds.segment = #ds.segment<forward, backward>} {
    %a = ds.alloc activations : !ds.buffer<tensor<32xf32>, [1], device>
    ds.call fill(%a) writes [0] params [0.0 : f64] on compute : !ds.buffer<tensor<32xf32>, [1], device>
    return
  }
  func.func @last(%w: !ds.buffer<tensor<16xf32>, [1], device> {ds.state = @w}, %x: !ds.buffer<tensor<16xf32>, [1], device> {ds.input = "x"}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %b = ds.alloc activations : !ds.buffer<tensor<64xf32>, [1], device>
    ds.call fill(%b) writes [0] params [0.0 : f64] on compute : !ds.buffer<tensor<64xf32>, [1], device>
    ds.call copy(%x, %w) writes [1] params [] on compute : !ds.buffer<tensor<16xf32>, [1], device>, !ds.buffer<tensor<16xf32>, [1], device>
    return
  }
}

// -----

// 1 and 3 bytes: each starts on a cache line, and the arena ends on one: 128 bytes.
// CHECK: ds.arena device bytes 128
// CHECK-LABEL: @aligns
// CHECK-DAG: ds.alloc activations offset {{0|64}} : !ds.buffer<tensor<1xi8>
// CHECK-DAG: ds.alloc activations offset {{0|64}} : !ds.buffer<tensor<3xi8>
module {
  func.func @aligns() attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %a = ds.alloc activations : !ds.buffer<tensor<1xi8>, [1], device>
    ds.call fill(%a) writes [0] params [0.0 : f64] on compute : !ds.buffer<tensor<1xi8>, [1], device>
    %b = ds.alloc activations : !ds.buffer<tensor<3xi8>, [1], device>
    ds.call fill(%b) writes [0] params [0.0 : f64] on compute : !ds.buffer<tensor<3xi8>, [1], device>
    ds.call fill(%a) writes [0] params [0.0 : f64] on compute : !ds.buffer<tensor<1xi8>, [1], device>
    return
  }
}

// -----

// Two spaces, two arenas: each begins at 0, and what lies in one takes nothing of the other.
// CHECK: ds.arena device bytes 128 lower_bound 128
// CHECK: ds.arena host bytes 192 lower_bound 192
// CHECK: ds.state @w {{.*}}offset = 0 : i64
// CHECK: ds.state @m {{.*}}offset = {{[0-9]+}} : i64
// CHECK: ds.alloc activations offset {{[0-9]+}} : !ds.buffer<tensor<32xf32>, [1], host>
module {
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<32xf32>
  ds.state @m role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<16xf32>
  func.func @last(%w: !ds.buffer<tensor<32xf32>, [1], device> {ds.state = @w}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %h = ds.alloc activations : !ds.buffer<tensor<32xf32>, [1], host>
    ds.transfer %w to %h on to_host : !ds.buffer<tensor<32xf32>, [1], device>, !ds.buffer<tensor<32xf32>, [1], host>
    ds.transfer %h to %w on to_device : !ds.buffer<tensor<32xf32>, [1], host>, !ds.buffer<tensor<32xf32>, [1], device>
    return
  }
}

// -----

// What was loaded for a gather is done with when compute has waited for the gather, whose stream had waited for the copy:
// %b takes the place of %a, for which compute itself waits nowhere.
// CHECK: ds.arena device bytes 192 lower_bound 192
// CHECK: ds.alloc activations offset [[A:[0-9]+]] : !ds.buffer<tensor<16xf32>
// CHECK: ds.alloc activations offset [[A]] : !ds.buffer<tensor<16xf32>
module {
  ds.mesh @mesh axes [dp = 2]
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<16xf32>
  func.func @last(%w: !ds.buffer<tensor<16xf32>, [1], host> {ds.state = @w}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %a = ds.alloc activations : !ds.buffer<tensor<16xf32>, [1], device>
    ds.transfer %w to %a on to_device : !ds.buffer<tensor<16xf32>, [1], host>, !ds.buffer<tensor<16xf32>, [1], device>
    ds.record 0 on to_device
    ds.wait 0 on gather
    %g = ds.alloc communication : !ds.buffer<tensor<32xf32>, [1], device>
    ds.communicate all_gather ins(%a) outs(%g) along dp carries parameter number 0 on gather : (!ds.buffer<tensor<16xf32>, [1], device>) -> !ds.buffer<tensor<32xf32>, [1], device>
    ds.record 1 on gather
    ds.wait 1 on compute
    %b = ds.alloc activations : !ds.buffer<tensor<16xf32>, [1], device>
    ds.call fill(%b) writes [0] params [0.0 : f64] on compute : !ds.buffer<tensor<16xf32>, [1], device>
    ds.call fill(%g) writes [0] params [0.0 : f64] on compute : !ds.buffer<tensor<32xf32>, [1], device>
    return
  }
}
