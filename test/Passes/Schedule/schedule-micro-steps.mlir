// RUN: ds-opt %s --ds-schedule-communication --ds-insert-events --ds-verify-scheduled --ds-verify-collectives | FileCheck %s
// RUN: ds-opt %s --ds-set-machine=memory=11534336 --ds-schedule-communication | FileCheck %s --check-prefix=TIGHT
// RUN: ds-opt %s --ds-schedule-communication=max-reuse-elements=0 | FileCheck %s --check-prefix=AGAIN

!part = !ds.buffer<tensor<262144xf32>, [1], device>
!whole = !ds.buffer<tensor<524288xf32>, [1], device>

// Eight micro-steps: @first, six times @middle, @last, which reads each once: 2 + 6 * 2 + 1 = 15 gathers. Without a limit both parameters are gathered once in a step, into
// states of their own; @last changes @a's shard behind the last use. Evaluation gathers into the same places.
// CHECK: gathers = [{function = "first", kept_for_step = ["a.parameter", "b"], kept_for_step_bytes = 4194304, saved_gathers = 15,
// TIGHT: gathers = [{function = "first", kept_for_step = ["{{a.parameter|b}}"], kept_for_step_bytes = 2097152, {{.*}}{function = "middle", {{.*}}again = [{states = ["{{.*}}"], wanted = 12582912, limit = 11534336}]
// AGAIN: gathers = [{function = "first", kept = ["b"], kept_bytes = 2097152, again = [{for_backward = true, reason = reuse_elements, states = ["a.parameter"], wanted = 524288}
module attributes {ds.training = #ds.training<gradient_accumulation_steps = 8>} {
  ds.mesh @mesh axes [dp = 2]
  ds.schedule stage 0 [#ds.run<@first, first 0, count 1, gradients set>, #ds.run<@middle, first 1, count 6, gradients add>,
                       #ds.run<@last, first 7, count 1, gradients add>]
  // CHECK: ds.state @a.gathered role (buffer) {{.*}} {gathered_from = @a.parameter} : tensor<524288xf32>
  ds.state @a.parameter role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {stay = #ds.stay<step>} : tensor<262144xf32>
  // CHECK: ds.state @b.gathered role (buffer) {{.*}} {gathered_from = @b} : tensor<524288xf32>
  ds.state @b role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {stay = #ds.stay<step>} : tensor<262144xf32>

  // CHECK-LABEL: func.func @first
  // CHECK-SAME: %[[A:[a-z0-9]+]]: !ds.buffer<tensor<524288xf32>, [1], device> {ds.state = @a.gathered}, %[[B:[a-z0-9]+]]: !ds.buffer<tensor<524288xf32>, [1], device> {ds.state = @b.gathered})
  // CHECK: ds.communicate all_gather {{.*}} outs(%[[A]])
  // CHECK: ds.communicate all_gather {{.*}} outs(%[[B]])
  // CHECK-NOT: ds.communicate
  // CHECK: return
  //
  // 11 MiB: 2 of shards, 2 of input, 4 of activations and what the running op reads leave room for one parameter.
  // TIGHT-LABEL: func.func @first
  // TIGHT-COUNT-3: ds.communicate
  // TIGHT-NOT: ds.communicate
  // TIGHT: return
  //
  // Nothing lies between the uses of @b in a micro-step, but @a's do from one to the next.
  // AGAIN-LABEL: func.func @first
  func.func @first(%a: !part {ds.state = @a.parameter}, %b: !part {ds.state = @b}, %x: !whole {ds.input = "x"}) attributes {ds.segment = #ds.segment<forward, backward>} {
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

  // CHECK-LABEL: func.func @middle
  // CHECK-SAME: %[[A:[a-z0-9]+]]: !ds.buffer<tensor<524288xf32>, [1], device> {ds.state = @a.gathered}, %[[B:[a-z0-9]+]]: !ds.buffer<tensor<524288xf32>, [1], device> {ds.state = @b.gathered})
  // CHECK-NOT: ds.communicate
  // CHECK: ds.call copy(%[[A]], %
  // CHECK: ds.call copy(%[[B]], %
  // CHECK: ds.call copy(%[[B]], %
  // CHECK: ds.call copy(%[[A]], %
  //
  // TIGHT-LABEL: func.func @middle
  // TIGHT-COUNT-2: ds.communicate
  // TIGHT-NOT: ds.communicate
  // TIGHT: return
  //
  // AGAIN-LABEL: func.func @middle
  func.func @middle(%a: !part {ds.state = @a.parameter}, %b: !part {ds.state = @b}, %x: !whole {ds.input = "x"}) attributes {ds.segment = #ds.segment<forward, backward>} {
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

  // CHECK-LABEL: func.func @last
  // CHECK-NOT: ds.communicate
  // CHECK: ds.call fill
  // CHECK: return
  func.func @last(%a: !part {ds.state = @a.parameter}, %b: !part {ds.state = @b}, %x: !whole {ds.input = "x"}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %fa = ds.alloc communication : !whole
    ds.communicate all_gather ins(%a) outs(%fa) along dp carries parameter on gather : (!part) -> !whole
    %y = ds.alloc activations : !whole
    ds.call copy(%fa, %y) writes [1] params [] on compute : !whole, !whole
    %fb = ds.alloc communication : !whole
    ds.communicate all_gather ins(%b) outs(%fb) along dp carries parameter on gather : (!part) -> !whole
    ds.call copy(%fb, %y) writes [1] params [] on compute : !whole, !whole
    ds.call fill(%a) writes [0] params [0.0] on compute : !part
    return
  }

  // CHECK-LABEL: func.func @evaluate
  // CHECK-SAME: %[[A:[a-z0-9]+]]: !ds.buffer<tensor<524288xf32>, [1], device> {ds.state = @a.gathered})
  // CHECK: ds.communicate all_gather {{.*}} outs(%[[A]])
  // CHECK: ds.call copy(%[[A]], %
  func.func @evaluate(%a: !part {ds.state = @a.parameter}, %x: !whole {ds.input = "x"}) attributes {ds.segment = #ds.segment<evaluation>} {
    %fa = ds.alloc communication : !whole
    ds.communicate all_gather ins(%a) outs(%fa) along dp carries parameter on gather : (!part) -> !whole
    ds.call copy(%fa, %x) writes [1] params [] on compute : !whole, !whole
    return
  }
}
