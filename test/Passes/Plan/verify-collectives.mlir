// RUN: ds-opt %s --ds-verify-collectives --split-input-file | FileCheck %s

!part = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<8xf32>, [1], device>

// What one stream does is ordered anyway.
// CHECK-LABEL: @compute_alone
ds.mesh @mesh axes [dp = 2]
ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
func.func @compute_alone(%x: !whole {ds.input = "x"}) {
  ds.call fill(%x) writes [0] params [0.0] on compute : !whole
  ds.call fill(%x) writes [0] params [1.0] on compute : !whole
  return
}

// Ordered through a third stream: gather waits for reduce, compute for gather.
// CHECK-LABEL: @by_way_of_another_stream
func.func @by_way_of_another_stream(%x: !whole {ds.input = "x"}, %w: !part {ds.state = @w}) {
  ds.communicate reduce_scatter ins(%x) outs(%w) reduce sum along dp number 0 on reduce : (!whole) -> !part
  ds.record 0 on reduce
  ds.wait 0 on gather
  ds.record 1 on gather
  ds.wait 1 on compute
  ds.call fill(%w) writes [0] params [0.0] on compute : !part
  return
}

// Two streams may read the same; and each rank's part may be gathered in its place.
// CHECK-LABEL: @in_place
func.func @in_place(%x: !whole {ds.input = "x"}, %w: !part {ds.state = @w}) {
  %own = ds.view %x offset 0 shifts [dp = 4] : !whole -> !part
  ds.communicate all_gather ins(%own) outs(%x) along dp number 0 on gather : (!part) -> !whole
  ds.communicate all_reduce ins(%w) outs(%w) reduce sum along dp number 1 on reduce : (!part) -> !part
  return
}

// A sum may stay where this rank's part lies.
// CHECK-LABEL: @sum_in_place
func.func @sum_in_place(%x: !whole {ds.input = "x"}) {
  %own = ds.view %x offset 0 shifts [dp = 4] : !whole -> !part
  ds.communicate reduce_scatter ins(%x) outs(%own) reduce sum along dp number 0 on reduce : (!whole) -> !part
  return
}

// What a stream has learned once it keeps, though it waits for less afterwards.
// CHECK-LABEL: @knows_what_it_waited_for
func.func @knows_what_it_waited_for(%x: !whole {ds.input = "x"}, %w: !part {ds.state = @w}) {
  ds.record 0 on reduce
  ds.communicate reduce_scatter ins(%x) outs(%w) reduce sum along dp number 0 on reduce : (!whole) -> !part
  ds.record 1 on reduce
  ds.wait 1 on compute
  ds.wait 0 on compute
  ds.call fill(%w) writes [0] params [0.0] on compute : !part
  return
}
