// RUN: ds-opt %s --pass-pipeline='builtin.module(func.func(ds-speculate-updates))' | FileCheck %s
// RUN: ds-opt %s --pass-pipeline='builtin.module(func.func(ds-speculate-updates,ds-split-updates{sub-group=256},ds-insert-events),ds-verify-scheduled)' | FileCheck %s --check-prefix=WHOLE
!device = !ds.buffer<tensor<1000xf32>, [1], device>
!host = !ds.buffer<tensor<1000xf32>, [1], host>
!wide = !ds.buffer<tensor<2000xf32>, [1], host>
!scalar = !ds.buffer<tensor<f32>, [], host>
!truth = !ds.buffer<tensor<i1>, [], host>
module attributes {ds.phase = #ds.phase<scheduled>} {
  ds.state @m role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<1000xf32>
  ds.state @v role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<1000xf32>
  ds.state @p role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<1000xf32>
  ds.state @q role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<1000xf32>
  ds.state @both role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<2000xf32>

  // Each update goes right behind the copy of its own gradient, with the guess, whose maker waits for nothing. What it
  // changes is copied before; what it only writes is not. In its old place it reads the copy, where the guess was wrong. What is sent to the
  // device is sent behind that.
  // CHECK-LABEL: func.func @two
  // CHECK-SAME: (%[[G:.*]]: {{.*}}, %[[H:.*]]: {{.*}}, %[[M:.*]]: {{.*}}, %[[V:.*]]: {{.*}}, %[[P:[a-z0-9]+]]: {{.*}}@p}
  // CHECK: %[[ONE:.*]] = ds.alloc
  // CHECK: ds.launch @guess ins() outs(%[[ONE]]) on host
  // CHECK: ds.transfer %[[G]] to %[[GH:.*]] on to_host
  // CHECK: %[[UNDO:.*]] = ds.alloc optimizer : !ds.buffer<tensor<1000xf32>, [1], host>
  // CHECK: ds.call copy(%[[M]], %[[UNDO]]) writes [1] params [] on host speculative
  // CHECK: ds.launch @update ins(%[[M]], %[[GH]], %[[ONE]]) outs(%[[M]], %[[SENT:.*]]) extent 1000 on host speculative
  // CHECK: ds.transfer %[[H]] to %[[HH:.*]] on to_host
  // CHECK: ds.call copy(%[[V]], %[[UNDO2:.*]]) writes [1]
  // CHECK: ds.launch @update ins(%[[V]], %[[HH]], %[[ONE]])
  // CHECK: ds.launch @judge ins(%[[GH]], %[[HH]], %[[ONE]]) outs(%[[TRUTH:.*]], %[[WRONG:.*]]) on host
  // CHECK-NOT: ds.presumed
  // CHECK: ds.launch @update ins(%[[UNDO]], %[[GH]], %[[TRUTH]]) outs(%[[M]], %[[SENT]]) extent 1000 when(%[[WRONG]] : {{.*}}) on host :
  // CHECK: ds.transfer %[[SENT]] to %[[P]] on to_device
  // CHECK: ds.launch @update ins(%[[UNDO2]], %[[HH]], %[[TRUTH]]) outs(%[[V]], %{{.*}}) extent 1000 when(%[[WRONG]] : {{.*}}) on host :

  // Neither of the two is cut into sub-groups: what they give waits whole.
  // WHOLE-LABEL: func.func @two
  // WHOLE-COUNT-4: extent 1000
  // WHOLE-NOT: extent
  // WHOLE-LABEL: func.func @late
  func.func @two(%g: !device {ds.input = "g"}, %h: !device {ds.input = "h"}, %m: !host {ds.state = @m}, %v: !host {ds.state = @v}, %p: !device {ds.state = @p}, %q: !device {ds.state = @q})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %gh = ds.alloc gradients : !host
    ds.transfer %g to %gh on to_host : !device, !host
    %hh = ds.alloc gradients : !host
    ds.transfer %h to %hh on to_host : !device, !host
    %one = ds.alloc workspace : !scalar
    ds.launch @guess ins() outs(%one) on host : () -> !scalar
    %c = ds.alloc workspace : !scalar
    %w = ds.alloc workspace : !truth
    ds.launch @judge ins(%gh, %hh, %one) outs(%c, %w) on host : (!host, !host, !scalar) -> (!scalar, !truth)
    ds.presumed %c as %one unless %w : !scalar, !truth
    %a = ds.alloc workspace : !host
    ds.launch @update ins(%m, %gh, %c) outs(%m, %a) extent 1000 on host : (!host, !host, !scalar) -> (!host, !host)
    ds.transfer %a to %p on to_device : !host, !device
    %b = ds.alloc workspace : !host
    ds.launch @update ins(%v, %hh, %c) outs(%v, %b) extent 1000 on host : (!host, !host, !scalar) -> (!host, !host)
    ds.transfer %b to %q on to_device : !host, !device
    return
  }

  // A guess that is known no earlier than the truth moves nothing.
  // CHECK-LABEL: func.func @late
  // CHECK: ds.launch @judge
  // CHECK: ds.launch @judge
  // CHECK-NOT: ds.call
  // CHECK: ds.launch @update
  // CHECK-NOT: ds.launch
  // CHECK: return
  func.func @late(%g: !device {ds.input = "g"}, %h: !device {ds.input = "h"}, %m: !host {ds.state = @m}, %p: !device {ds.state = @p})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %gh = ds.alloc gradients : !host
    ds.transfer %g to %gh on to_host : !device, !host
    %start = ds.alloc workspace : !scalar
    ds.launch @guess ins() outs(%start) on host : () -> !scalar
    %one = ds.alloc workspace : !scalar
    %x = ds.alloc workspace : !truth
    %c = ds.alloc workspace : !scalar
    %w = ds.alloc workspace : !truth
    ds.launch @judge ins(%gh, %gh, %start) outs(%c, %w) on host : (!host, !host, !scalar) -> (!scalar, !truth)
    ds.launch @judge ins(%gh, %gh, %c) outs(%one, %x) on host : (!host, !host, !scalar) -> (!scalar, !truth)
    ds.presumed %c as %one unless %w : !scalar, !truth
    %a = ds.alloc workspace : !host
    ds.launch @update ins(%m, %gh, %c) outs(%m, %a) extent 1000 on host : (!host, !host, !scalar) -> (!host, !host)
    ds.transfer %a to %p on to_device : !host, !device
    return
  }

  // What still reads the old value comes first: here that is the gradient's own maker, and the update goes right behind it.
  // CHECK-LABEL: func.func @read_until
  // CHECK: ds.launch @guess
  // CHECK: ds.transfer %{{.*}} to %[[GH:.*]] on to_host
  // CHECK: ds.transfer %[[M:.*]] to %{{.*}} on to_device
  // CHECK-NEXT: ds.alloc
  // CHECK-NEXT: ds.call copy(%[[M]], %{{.*}})
  // CHECK-NEXT: ds.alloc
  // CHECK-NEXT: ds.launch @update
  // CHECK: ds.launch @judge
  // CHECK: ds.launch @update {{.*}} when
  func.func @read_until(%g: !device {ds.input = "g"}, %m: !host {ds.state = @m}, %p: !device {ds.state = @p}, %q: !device {ds.state = @q})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %gh = ds.alloc gradients : !host
    ds.transfer %g to %gh on to_host : !device, !host
    ds.transfer %m to %q on to_device : !host, !device
    %one = ds.alloc workspace : !scalar
    ds.launch @guess ins() outs(%one) on host : () -> !scalar
    %c = ds.alloc workspace : !scalar
    %w = ds.alloc workspace : !truth
    ds.launch @judge ins(%gh, %gh, %one) outs(%c, %w) on host : (!host, !host, !scalar) -> (!scalar, !truth)
    ds.presumed %c as %one unless %w : !scalar, !truth
    %a = ds.alloc workspace : !host
    ds.launch @update ins(%m, %gh, %c) outs(%m, %a) extent 1000 on host : (!host, !host, !scalar) -> (!host, !host)
    ds.transfer %a to %p on to_device : !host, !device
    return
  }

  // An update that writes a part of what it reads stays, and so does one of which another that goes early has touched what it does.
  // CHECK-LABEL: func.func @parts
  // CHECK: ds.launch @judge
  // CHECK: ds.launch @update ins({{.*}}) outs(%{{.*}}, %{{.*}}) extent 1000 on host :
  // CHECK-LABEL: func.func @twice
  // CHECK: ds.launch @update {{.*}} speculative
  // CHECK: ds.launch @judge
  // CHECK: ds.launch @update {{.*}} when
  // CHECK: ds.launch @update ins({{.*}}) outs(%{{.*}}, %{{.*}}) extent 1000 on host :
  func.func @parts(%g: !device {ds.input = "g"}, %s: !wide {ds.state = @both})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %gh = ds.alloc gradients : !host
    ds.transfer %g to %gh on to_host : !device, !host
    %one = ds.alloc workspace : !scalar
    ds.launch @guess ins() outs(%one) on host : () -> !scalar
    %c = ds.alloc workspace : !scalar
    %w = ds.alloc workspace : !truth
    ds.launch @judge ins(%gh, %gh, %one) outs(%c, %w) on host : (!host, !host, !scalar) -> (!scalar, !truth)
    ds.presumed %c as %one unless %w : !scalar, !truth
    %first = ds.view %s offset 0 : !wide -> !host
    %shifted = ds.view %s offset 500 : !wide -> !host
    %a = ds.alloc workspace : !host
    ds.launch @update ins(%first, %gh, %c) outs(%shifted, %a) extent 1000 on host : (!host, !host, !scalar) -> (!host, !host)
    return
  }
  func.func @twice(%g: !device {ds.input = "g"}, %m: !host {ds.state = @m})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %gh = ds.alloc gradients : !host
    ds.transfer %g to %gh on to_host : !device, !host
    %one = ds.alloc workspace : !scalar
    ds.launch @guess ins() outs(%one) on host : () -> !scalar
    %c = ds.alloc workspace : !scalar
    %w = ds.alloc workspace : !truth
    ds.launch @judge ins(%gh, %gh, %one) outs(%c, %w) on host : (!host, !host, !scalar) -> (!scalar, !truth)
    ds.presumed %c as %one unless %w : !scalar, !truth
    %a = ds.alloc workspace : !host
    ds.launch @update ins(%m, %gh, %c) outs(%m, %a) extent 1000 on host : (!host, !host, !scalar) -> (!host, !host)
    %b = ds.alloc workspace : !host
    ds.launch @update ins(%m, %a, %c) outs(%m, %b) extent 1000 on host : (!host, !host, !scalar) -> (!host, !host)
    return
  }

  ds.kernel @guess inputs 0 buffers [!scalar] {
    %s = ds.constant dense<1.0> : tensor<f32>
    ds.yield %s : tensor<f32>
  }
  ds.kernel @judge inputs 3 buffers [!host, !host, !scalar, !scalar, !truth] {
  ^bb0(%g: tensor<1000xf32>, %h: tensor<1000xf32>, %one: tensor<f32>):
    %s = ds.add %g, %h : tensor<1000xf32>
    %n = ds.reduce sum %s dims [0] : tensor<1000xf32> -> tensor<f32>
    %w = ds.compare ne %n, %one : tensor<f32>
    ds.yield %n, %w : tensor<f32>, tensor<i1>
  }
  ds.kernel @update inputs 3 buffers [!ds.buffer<tensor<?xf32>, [1], host>, !ds.buffer<tensor<?xf32>, [1], host>, !scalar, !ds.buffer<tensor<?xf32>, [1], host>, !ds.buffer<tensor<?xf32>, [1], host>] {
  ^bb0(%m: tensor<?xf32>, %g: tensor<?xf32>, %c: tensor<f32>):
    %d = ds.mul %m, %g : tensor<?xf32>
    %e = ds.add %m, %d : tensor<?xf32>
    ds.yield %e, %d : tensor<?xf32>, tensor<?xf32>
  }
}
