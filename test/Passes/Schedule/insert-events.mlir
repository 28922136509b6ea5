// RUN: ds-opt %s --ds-insert-events | FileCheck %s
// RUN: ds-opt %s --ds-insert-events --ds-verify-collectives | FileCheck %s

!part = !ds.buffer<tensor<4xf32>, [1], device>
!whole = !ds.buffer<tensor<8xf32>, [1], device>

ds.mesh @mesh axes [dp = 2]
ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>

// One stream needs no events.
// CHECK-LABEL: @compute_alone
// CHECK-NOT: ds.record
// CHECK: return
func.func @compute_alone(%x: !whole {ds.input = "x"}) {
  %a = ds.alloc activations : !whole
  ds.call copy(%x, %a) writes [1] params [] on compute : !whole, !whole
  return
}

// E1: the reader waits for the gather; E4: the gather is number 0. Before it nothing was computed, so it waits for
// nothing.
// CHECK-LABEL: @reads_what_was_gathered
// CHECK-NOT: ds.wait
// CHECK: ds.communicate all_gather {{.*}} number 0 on gather
// CHECK-NEXT: ds.record [[E:[0-9]+]] on gather
// CHECK: ds.wait [[E]] on compute
// CHECK-NEXT: ds.call copy
func.func @reads_what_was_gathered(%w: !part {ds.state = @w}) {
  %f = ds.alloc communication : !whole
  ds.communicate all_gather ins(%w) outs(%f) along dp on gather : (!part) -> !whole
  %y = ds.alloc activations : !whole
  ds.call copy(%f, %y) writes [1] params [] on compute : !whole, !whole
  return
}

// E1: who writes the shard waits until the gather has read it. E3: and only the first.
// CHECK-LABEL: @writes_what_is_being_gathered
// CHECK: ds.communicate
// CHECK-NEXT: ds.record [[E:[0-9]+]] on gather
// CHECK-NEXT: ds.wait [[E]] on compute
// CHECK-NEXT: ds.call fill
// CHECK-NOT: ds.wait
// CHECK: return
func.func @writes_what_is_being_gathered(%w: !part {ds.state = @w}) {
  %f = ds.alloc communication : !whole
  ds.communicate all_gather ins(%w) outs(%f) along dp on gather : (!part) -> !whole
  ds.call fill(%w) writes [0] params [0.0] on compute : !part
  ds.call fill(%w) writes [0] params [1.0] on compute : !part
  return
}

// E2: a collective waits for what compute has done, though they share nothing: its memory may be somebody else's
// until then. Two that are issued together share the event.
// CHECK-LABEL: @waits_for_compute
// CHECK: ds.call fill
// CHECK: ds.record [[P:[0-9]+]] on compute
// CHECK-NEXT: ds.wait [[P]] on gather
// CHECK-NEXT: ds.communicate {{.*}} number 0
// CHECK-NOT: ds.wait {{.*}} on gather
// CHECK: ds.communicate {{.*}} number 1
func.func @waits_for_compute(%w: !part {ds.state = @w}) {
  %y = ds.alloc activations : !whole
  ds.call fill(%y) writes [0] params [0.0] on compute : !whole
  %f = ds.alloc communication : !whole
  ds.communicate all_gather ins(%w) outs(%f) along dp on gather : (!part) -> !whole
  %g = ds.alloc communication : !whole
  ds.communicate all_gather ins(%w) outs(%g) along dp on gather : (!part) -> !whole
  return
}

// E1 between two streams beside compute: what was reduced is gathered.
// CHECK-LABEL: @gathers_what_was_reduced
// CHECK: ds.communicate reduce_scatter {{.*}} number 0 on reduce
// CHECK-NEXT: ds.record [[R:[0-9]+]] on reduce
// CHECK: ds.wait [[R]] on gather
// CHECK: ds.communicate all_gather {{.*}} number 1 on gather
func.func @gathers_what_was_reduced(%x: !whole {ds.input = "x"}) {
  %s = ds.alloc gradients : !part
  ds.communicate reduce_scatter ins(%x) outs(%s) reduce sum along dp on reduce : (!whole) -> !part
  %f = ds.alloc communication : !whole
  ds.communicate all_gather ins(%s) outs(%f) along dp on gather : (!part) -> !whole
  return
}

// E3: an event that is there already is not recorded again.
// CHECK-LABEL: @uses_what_is_there
// CHECK: ds.record 4 on gather
// CHECK: ds.wait 4 on compute
// CHECK-NOT: ds.wait
// CHECK: return
func.func @uses_what_is_there(%w: !part {ds.state = @w}) {
  %f = ds.alloc communication : !whole
  ds.communicate all_gather ins(%w) outs(%f) along dp on gather : (!part) -> !whole
  ds.record 4 on gather
  ds.wait 4 on compute
  %y = ds.alloc activations : !whole
  ds.call copy(%f, %y) writes [1] params [] on compute : !whole, !whole
  return
}

// Windows that differ from rank to rank count with those of all ranks: part of the state is written, part of it may
// be another rank's.
// CHECK-LABEL: @windows_of_all_ranks
// CHECK: ds.communicate all_gather {{.*}} number 0
// CHECK-NEXT: ds.record [[E:[0-9]+]] on gather
// CHECK: ds.wait [[E]] on compute
// CHECK-NEXT: ds.call copy
func.func @windows_of_all_ranks(%x: !whole {ds.input = "x"}, %p: !part {ds.state = @w}) {
  %own = ds.view %x offset 0 shifts [dp = 4] : !whole -> !part
  ds.communicate all_gather ins(%own) outs(%x) along dp on gather : (!part) -> !whole
  %second = ds.view %x offset 4 : !whole -> !part
  ds.call copy(%second, %p) writes [1] params [] on compute : !part, !part
  return
}

// The same of a window that no rank's own command shares: another rank's part is where compute reads.
// CHECK-LABEL: @window_of_another_rank
// CHECK: ds.communicate all_reduce {{.*}} number 0
// CHECK-NEXT: ds.record [[E:[0-9]+]] on reduce
// CHECK: ds.wait [[E]] on compute
// CHECK-NEXT: ds.call copy
func.func @window_of_another_rank(%x: !whole {ds.input = "x"}, %p: !part {ds.state = @w}) {
  %own = ds.view %x offset 0 shifts [dp = 4] : !whole -> !part
  ds.communicate all_reduce ins(%own) outs(%own) reduce sum along dp on reduce : (!part) -> !part
  %second = ds.view %x offset 4 : !whole -> !part
  ds.call copy(%second, %p) writes [1] params [] on compute : !part, !part
  return
}

// E3: two streams that wait for the same share the event.
// CHECK-LABEL: @shares_the_event
// CHECK: ds.record [[P:[0-9]+]] on compute
// CHECK-NOT: ds.record
// CHECK: ds.wait [[P]] on gather
// CHECK-NOT: ds.record
// CHECK: ds.wait [[P]] on reduce
// CHECK: return
func.func @shares_the_event(%w: !part {ds.state = @w}, %x: !whole {ds.input = "x"}) {
  %y = ds.alloc activations : !whole
  ds.call fill(%y) writes [0] params [0.0] on compute : !whole
  %f = ds.alloc communication : !whole
  ds.communicate all_gather ins(%w) outs(%f) along dp on gather : (!part) -> !whole
  %s = ds.alloc gradients : !part
  ds.communicate reduce_scatter ins(%x) outs(%s) reduce sum along dp on reduce : (!whole) -> !part
  return
}

// E2: with what compute has done goes what it knows others to have. From the wait on, the memory of what is being reduced
// may be somebody else's, though nothing was computed since the reduction was issued.
// CHECK-LABEL: @knows_what_compute_knows
// CHECK: ds.record [[P:[0-9]+]] on compute
// CHECK-NEXT: ds.wait [[P]] on reduce
// CHECK: ds.wait 7 on compute
// CHECK-NOT: ds.wait [[P]]
// CHECK: ds.record [[Q:[0-9]+]] on compute
// CHECK-NEXT: ds.wait [[Q]] on gather
// CHECK-NEXT: ds.communicate all_gather
func.func @knows_what_compute_knows(%w: !part {ds.state = @w}, %x: !whole {ds.input = "x"}) {
  %y = ds.alloc activations : !whole
  ds.call fill(%y) writes [0] params [0.0] on compute : !whole
  %s = ds.alloc gradients : !part
  ds.communicate reduce_scatter ins(%x) outs(%s) reduce sum along dp on reduce : (!whole) -> !part
  ds.record 7 on reduce
  ds.wait 7 on compute
  %f = ds.alloc communication : !whole
  ds.communicate all_gather ins(%w) outs(%f) along dp on gather : (!part) -> !whole
  return
}
