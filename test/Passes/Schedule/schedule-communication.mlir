// RUN: ds-opt %s --ds-schedule-communication | FileCheck %s
// RUN: ds-opt %s --ds-schedule-communication=max-reuse-elements=0 | FileCheck %s --check-prefix=AGAIN
// RUN: ds-opt %s --ds-schedule-communication=prefetch-elements=0 | FileCheck %s --check-prefix=LATE
// RUN: ds-opt %s --ds-set-machine=memory=11534336 --ds-schedule-communication | FileCheck %s --check-prefix=TIGHT
// RUN: ds-opt %s --ds-set-machine=memory=9961472 --ds-schedule-communication | FileCheck %s --check-prefix=TIGHTER
// RUN: ds-opt %s --ds-schedule-communication=memory=9961472 | FileCheck %s --check-prefix=TIGHTER
// RUN: ds-opt %s --ds-schedule-communication=max-live-elements=600000 | FileCheck %s --check-prefix=FEW
// RUN: ds-opt %s --ds-schedule-communication --ds-insert-events --ds-verify-collectives -o /dev/null

!part = !ds.buffer<tensor<262144xf32>, [1], device>
!whole = !ds.buffer<tensor<524288xf32>, [1], device>

ds.mesh @mesh axes [dp = 2]
ds.state @a role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {stay = #ds.stay<segment>} : tensor<262144xf32>
ds.state @b role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {stay = #ds.stay<segment>} : tensor<262144xf32>

// No gathers, no decision.
// CHECK: module attributes {ds.decisions = #ds.decisions<gathers = [{function = "two_layers", kept = ["a", "b"], kept_bytes = 4194304, exposed_seconds =
// AGAIN: [{function = "two_layers", kept = ["b"], kept_bytes = {{[0-9]+}}, again = [{for_backward = true, reason = reuse_elements, states = ["a"],
// TIGHT: [{function = "two_layers", kept = ["b"], kept_bytes = {{[0-9]+}}, again = [{for_backward = true, states = ["a"], wanted = 12582912, limit = 11534336}]
// TIGHTER: [{function = "two_layers", kept = ["b"], kept_bytes = {{[0-9]+}}, again = [{for_backward = true, states = ["a"],
// FEW: [{function = "two_layers", kept = ["b"], kept_bytes = {{[0-9]+}}, again = [{for_backward = true, reason = live_elements, states = ["a"], wanted = 1048576, limit = 600000}]
// CHECK-LABEL: func.func @nothing_to_gather
// CHECK: return
func.func @nothing_to_gather(%x: !whole {ds.input = "x"}) {
  return
}

// Two layers, forward and backward. E1: @b's gather is issued before the first layer's command, which hides it.
// E2, E4: both are kept for backward.
// CHECK-LABEL: func.func @two_layers
// CHECK: ds.communicate all_gather ins(%[[A:arg[0-9]+]])
// CHECK: ds.communicate all_gather ins(%[[B:arg[0-9]+]])
// CHECK: ds.call copy
// CHECK-NOT: ds.communicate
// CHECK: return
//
// E3: with nothing kept over another parameter's use, @a is gathered again; nothing lies between @b's uses.
// AGAIN-LABEL: func.func @two_layers
// AGAIN-COUNT-3: ds.communicate
// AGAIN-NOT: ds.communicate
// AGAIN: return
//
// E3: no gather ahead of need.
// LATE-LABEL: func.func @two_layers
// LATE: ds.communicate all_gather ins(%[[A:arg[0-9]+]])
// LATE-NEXT: %{{.*}} = ds.alloc activations
// LATE-NEXT: ds.call copy
// LATE-NEXT: ds.alloc communication
// LATE-NEXT: ds.communicate all_gather
//
// E3: states 2 x 1 MiB, input 2 MiB, activations 2 MiB and from the second command on 4 MiB. Of 11 MiB @a, @b ahead of
// need take 6 + 4, so that is done; @a beside @b's use would take 8 + 4, so it goes and is gathered again behind that.
// TIGHT-LABEL: func.func @two_layers
// TIGHT: ds.communicate all_gather ins(%[[A:arg[0-9]+]])
// TIGHT: ds.communicate all_gather ins(%[[B:arg[0-9]+]])
// TIGHT: ds.call copy
// TIGHT-NOT: ds.communicate
// TIGHT: ds.call copy
// TIGHT-NOT: ds.communicate
// TIGHT: ds.call copy
// TIGHT: ds.communicate all_gather ins(%[[A]])
// TIGHT: ds.call copy
// TIGHT-NOT: ds.communicate
// TIGHT: return
//
// E1, E3: 9.5 MiB do not hold @b ahead of need: it is gathered where it is needed, beside nothing.
// TIGHTER-LABEL: func.func @two_layers
// TIGHTER: ds.communicate all_gather ins(%[[A:arg[0-9]+]])
// TIGHTER-NOT: ds.communicate
// TIGHTER: ds.call copy
// TIGHTER: ds.communicate all_gather ins(%[[B:arg[0-9]+]])
// TIGHTER: ds.call copy
//
// E3: 524288 elements at a time, so @a cannot stay over @b's use.
// FEW-LABEL: func.func @two_layers
func.func @two_layers(%a: !part {ds.state = @a}, %b: !part {ds.state = @b}, %x: !whole {ds.input = "x"}) {
  %fa = ds.alloc communication : !whole
  ds.communicate all_gather ins(%a) outs(%fa) along dp carries parameter on gather : (!part) -> !whole
  %y = ds.alloc activations : !whole
  ds.call copy(%fa, %y) writes [1] params [] on compute : !whole, !whole
  %fb = ds.alloc communication : !whole
  ds.communicate all_gather ins(%b) outs(%fb) along dp carries parameter on gather : (!part) -> !whole
  %z = ds.alloc activations : !whole
  ds.call copy(%fb, %z) writes [1] params [] on compute : !whole, !whole
  %gb = ds.alloc communication : !whole
  ds.communicate all_gather ins(%b) outs(%gb) along dp carries parameter on gather : (!part) -> !whole
  ds.call copy(%gb, %y) writes [1] params [] on compute : !whole, !whole
  %ga = ds.alloc communication : !whole
  ds.communicate all_gather ins(%a) outs(%ga) along dp carries parameter on gather : (!part) -> !whole
  ds.call copy(%ga, %z) writes [1] params [] on compute : !whole, !whole
  return
}

// What changes in between is gathered again, behind the change.
// CHECK-LABEL: func.func @shard_changes
// CHECK: ds.communicate
// CHECK: ds.call copy
// CHECK: ds.call fill
// CHECK: ds.communicate
// CHECK: ds.call copy
func.func @shard_changes(%a: !part {ds.state = @a}, %x: !whole {ds.input = "x"}) {
  %f = ds.alloc communication : !whole
  ds.communicate all_gather ins(%a) outs(%f) along dp carries parameter on gather : (!part) -> !whole
  ds.call copy(%f, %x) writes [1] params [] on compute : !whole, !whole
  ds.call fill(%a) writes [0] params [0.0] on compute : !part
  %g = ds.alloc communication : !whole
  ds.communicate all_gather ins(%a) outs(%g) along dp carries parameter on gather : (!part) -> !whole
  ds.call copy(%g, %x) writes [1] params [] on compute : !whole, !whole
  return
}

// A gather into a state happens where it stands.
// CHECK-LABEL: func.func @in_place
// CHECK: ds.call fill
// CHECK: ds.communicate
func.func @in_place(%x: !whole {ds.input = "x"}) {
  %own = ds.view %x offset 0 shifts [dp = 262144] : !whole -> !part
  ds.call fill(%own) writes [0] params [0.0] on compute : !part
  ds.communicate all_gather ins(%own) outs(%x) along dp carries parameter on gather : (!part) -> !whole
  return
}
