// RUN: ds-opt %s --ds-verify-scheduled | FileCheck %s

// All that a scheduled module may hold: a state, an input, an allocation, a view, a launch, a call, a kernel.
// CHECK: ds.launch @double
ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
func.func @last(%w: !ds.buffer<tensor<8xf32>, [1], device> {ds.state = @w}, %x: !ds.buffer<tensor<4xf32>, [1], device> {ds.input = "x"}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
  %a = ds.alloc activations : !ds.buffer<tensor<8xf32>, [1], device>
  %low = ds.view %a offset 0 : !ds.buffer<tensor<8xf32>, [1], device> -> !ds.buffer<tensor<4xf32>, [1], device>
  %high = ds.view %a offset 4 : !ds.buffer<tensor<8xf32>, [1], device> -> !ds.buffer<tensor<4xf32>, [1], device>
  ds.launch @double ins(%x) outs(%low) on compute : (!ds.buffer<tensor<4xf32>, [1], device>) -> (!ds.buffer<tensor<4xf32>, [1], device>)
  ds.call copy(%low, %high) writes [1] params [] on compute : !ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<4xf32>, [1], device>
  ds.call copy(%a, %w) writes [1] params [] on compute : !ds.buffer<tensor<8xf32>, [1], device>, !ds.buffer<tensor<8xf32>, [1], device>
  return
}
ds.kernel @double inputs 1 buffers [!ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<4xf32>, [1], device>] {
^bb0(%v: tensor<4xf32>):
  %d = ds.add %v, %v : tensor<4xf32>
  ds.yield %d : tensor<4xf32>
}
