// RUN: ds-opt %s --ds-verify-planned | FileCheck %s

// %a and %b have one place, one after the other; %a is last used by the command that first writes the state.
// CHECK: ds.arena device bytes 192
module {
  ds.arena device bytes 192 lower_bound 192
  ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {offset = 0 : i64} : tensor<4xf32>
  func.func @last(%w: !ds.buffer<tensor<4xf32>, [1], device> {ds.state = @w}, %x: !ds.buffer<tensor<4xf32>, [1], device> {ds.input = "x", ds.offset = 64 : i64}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %a = ds.alloc activations offset 128 : !ds.buffer<tensor<4xf32>, [1], device>
    %b = ds.alloc activations offset 128 : !ds.buffer<tensor<16xf32>, [1], device>
    ds.call copy(%x, %a) writes [1] params [] on compute : !ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<4xf32>, [1], device>
    ds.call copy(%a, %w) writes [1] params [] on compute : !ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<4xf32>, [1], device>
    ds.call fill(%b) writes [0] params [0.0 : f64] on compute : !ds.buffer<tensor<16xf32>, [1], device>
    return
  }
}
