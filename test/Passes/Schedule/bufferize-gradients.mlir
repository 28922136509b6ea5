// RUN: ds-opt %s --ds-bufferize --ds-insert-events --ds-verify-scheduled | FileCheck %s
// Nobody reads a gradient that micro-steps have added up behind the update, which gives it no new value: its place is taken again.
!nvme = !ds.stored<tensor<4x4xf32>, nvme>
!host = !ds.stored<tensor<4x4xf32>, host>
module attributes {ds.phase = #ds.phase<resident>} {
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x4xf32>
  ds.state @w.grad role(gradient) slot("grad") owner(@w) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x4xf32>
  ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x4xf32>
  ds.state @v.grad role(gradient) slot("grad") owner(@v) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<4x4xf32>
  ds.state @v.m role(moment) slot("m") owner(@v) init(#ds.init<zero, 0.0, 0.0>) home(nvme) : tensor<4x4xf32>

  // The product adds to the gradient where it is, with no copy.
  // CHECK-LABEL: func.func @product
  // CHECK-SAME: %[[X:[a-z0-9]+]]: {{.*}}"x"}, %[[W:[a-z0-9]+]]: {{.*}}@w}, %[[G:[a-z0-9]+]]: {{.*}}@w.grad}
  // CHECK-NOT: ds.alloc
  // CHECK: ds.call matmul(%[[X]], %[[X]], %[[G]]) writes [2]
  // CHECK-NEXT: ds.launch @{{.*}} ins(%[[W]], %[[G]]) outs(%[[W]])
  func.func @product(%x: tensor<4x4xf32> {ds.input = "x"}, %w: tensor<4x4xf32> {ds.state = @w}, %g: tensor<4x4xf32> {ds.state = @w.grad}) -> (tensor<4x4xf32> {ds.state = @w})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %s = ds.matmul %x, %x into(%g) {ds.work = #ds.work<backward>} : tensor<4x4xf32>, tensor<4x4xf32> into tensor<4x4xf32> -> tensor<4x4xf32>
    %n = ds.fused(%w, %s) {ds.work = #ds.work<update>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> {
    ^bb0(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>):
      %d = ds.sub %a, %b : tensor<4x4xf32>
      ds.yield %d : tensor<4x4xf32>
    }
    return %n : tensor<4x4xf32>
  }

  // A function without an update leaves it as it is: others read it.
  // CHECK-LABEL: func.func @keeps
  // CHECK: %[[OWN:.*]] = ds.alloc
  // CHECK: ds.call copy(%{{.*}}, %[[OWN]])
  func.func @keeps(%x: tensor<4x4xf32> {ds.input = "x"}, %w: tensor<4x4xf32> {ds.state = @w}, %g: tensor<4x4xf32> {ds.state = @w.grad}) -> (tensor<4x4xf32> {ds.state = @w})
      attributes {ds.segment = #ds.segment<forward, backward>} {
    %s = ds.matmul %x, %x into(%g) {ds.work = #ds.work<backward>} : tensor<4x4xf32>, tensor<4x4xf32> into tensor<4x4xf32> -> tensor<4x4xf32>
    %n = ds.fused(%w, %s) {ds.work = #ds.work<backward>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> {
    ^bb0(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>):
      %d = ds.sub %a, %b : tensor<4x4xf32>
      ds.yield %d : tensor<4x4xf32>
    }
    return %n : tensor<4x4xf32>
  }

  // Pieces of a loss and what is tied to it add one after the other, the first to what the state has: all of them where that is.
  // CHECK-LABEL: func.func @chain
  // CHECK-SAME: %[[X:[a-z0-9]+]]: {{.*}}"x"}, %[[G:[a-z0-9]+]]: {{.*}}@w.grad}
  // CHECK-NOT: ds.alloc
  // CHECK: ds.call matmul(%[[X]], %[[X]], %[[G]]) writes [2]
  // CHECK-NEXT: ds.call matmul(%[[X]], %[[X]], %[[G]]) writes [2]
  // CHECK-NEXT: return
  func.func @chain(%x: tensor<4x4xf32> {ds.input = "x"}, %g: tensor<4x4xf32> {ds.state = @w.grad}) -> (tensor<4x4xf32> {ds.state = @w.grad})
      attributes {ds.segment = #ds.segment<forward, backward>} {
    %s = ds.matmul %x, %x into(%g) {ds.work = #ds.work<backward>} : tensor<4x4xf32>, tensor<4x4xf32> into tensor<4x4xf32> -> tensor<4x4xf32>
    %t = ds.matmul %x, %x into(%s) {ds.work = #ds.work<backward>} : tensor<4x4xf32>, tensor<4x4xf32> into tensor<4x4xf32> -> tensor<4x4xf32>
    return %t : tensor<4x4xf32>
  }

  // What the state had is read behind the first of them: they add to a copy.
  // CHECK-LABEL: func.func @read_behind
  // CHECK-SAME: %[[X:[a-z0-9]+]]: {{.*}}"x"}, %[[W:[a-z0-9]+]]: {{.*}}@w}, %[[G:[a-z0-9]+]]: {{.*}}@w.grad}
  // CHECK: %[[OWN:.*]] = ds.alloc
  // CHECK: ds.call copy(%[[G]], %[[OWN]])
  // CHECK: ds.call matmul(%[[X]], %[[X]], %[[OWN]]) writes [2]
  // CHECK: ds.launch @{{.*}} ins(%[[W]], %[[G]]) outs(%[[W]])
  func.func @read_behind(%x: tensor<4x4xf32> {ds.input = "x"}, %w: tensor<4x4xf32> {ds.state = @w}, %g: tensor<4x4xf32> {ds.state = @w.grad})
      -> (tensor<4x4xf32> {ds.state = @w}, tensor<4x4xf32> {ds.state = @w.grad}) attributes {ds.segment = #ds.segment<forward, backward>} {
    %s = ds.matmul %x, %x into(%g) {ds.work = #ds.work<backward>} : tensor<4x4xf32>, tensor<4x4xf32> into tensor<4x4xf32> -> tensor<4x4xf32>
    %n = ds.fused(%w, %g) {ds.work = #ds.work<backward>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> {
    ^bb0(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>):
      %d = ds.sub %a, %b : tensor<4x4xf32>
      ds.yield %d : tensor<4x4xf32>
    }
    %t = ds.matmul %x, %x into(%s) {ds.work = #ds.work<backward>} : tensor<4x4xf32>, tensor<4x4xf32> into tensor<4x4xf32> -> tensor<4x4xf32>
    return %n, %t : tensor<4x4xf32>, tensor<4x4xf32>
  }

  // One of the host that was loaded for the product goes back to its own place, and what is made of it for the device takes that
  // again: the host has no other memory for either.
  // CHECK-LABEL: func.func @loaded
  // CHECK-SAME: %[[X:[a-z0-9]+]]: {{.*}}"x"}, %[[G:[a-z0-9]+]]: {{.*}}@v.grad}, %[[V:[a-z0-9]+]]: {{.*}}@v}
  // CHECK: %[[SUM:.*]] = ds.alloc {{.*}}device>
  // CHECK-NOT: ds.alloc
  // CHECK: ds.transfer %[[G]] to %[[SUM]] on to_device
  // CHECK: ds.call matmul(%[[X]], %[[X]], %[[SUM]])
  // CHECK: ds.transfer %[[SUM]] to %[[G]] on to_host
  // CHECK: ds.launch @{{.*}} ins(%[[G]]) outs(%[[G]]) {{.*}}on host
  // CHECK: ds.transfer %[[G]] to %[[V]] on to_device
  func.func @loaded(%x: tensor<4x4xf32> {ds.input = "x"}, %g: !host {ds.state = @v.grad}) -> (tensor<4x4xf32> {ds.state = @v})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %l = ds.load %g {ds.work = #ds.work<backward>} : !host -> tensor<4x4xf32>
    %s = ds.matmul %x, %x into(%l) {ds.work = #ds.work<backward>} : tensor<4x4xf32>, tensor<4x4xf32> into tensor<4x4xf32> -> tensor<4x4xf32>
    %t = ds.store %s {ds.work = #ds.work<update>} : tensor<4x4xf32> -> !host
    %h = ds.host(%t) {ds.work = #ds.work<update>} : (!host) -> !host {
    ^bb0(%a: tensor<4x4xf32>):
      %f = ds.fused(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32> {
      ^bb0(%b: tensor<4x4xf32>):
        %d = ds.neg %b : tensor<4x4xf32>
        ds.yield %d : tensor<4x4xf32>
      }
      ds.yield %f : tensor<4x4xf32>
    }
    %n = ds.load %h {ds.work = #ds.work<update>} : !host -> tensor<4x4xf32>
    return %n : tensor<4x4xf32>
  }

  // A state of storage that was moved to the host takes its new value back, though a gradient that dies comes first: storage moves
  // whole units, which a state's place is not.
  // CHECK-LABEL: func.func @moved
  // CHECK-SAME: %[[G:[a-z0-9]+]]: {{.*}}@v.grad}, %[[M:[a-z0-9]+]]: {{.*}}@v.m}
  // CHECK: ds.transfer %[[M]] to %[[HERE:.*]] on storage
  // CHECK: ds.launch @{{.*}} ins(%[[G]], %[[HERE]]) outs(%[[HERE]])
  // CHECK: ds.transfer %[[HERE]] to %[[M]] on storage
  func.func @moved(%g: !host {ds.state = @v.grad}, %m: !nvme {ds.state = @v.m}) -> (!nvme {ds.state = @v.m})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %l = ds.move %m {ds.work = #ds.work<update>} : !nvme -> !host
    %h = ds.host(%g, %l) {ds.work = #ds.work<update>} : (!host, !host) -> !host {
    ^bb0(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>):
      %f = ds.fused(%a, %b) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> {
      ^bb0(%c: tensor<4x4xf32>, %d: tensor<4x4xf32>):
        %e = ds.add %c, %d : tensor<4x4xf32>
        ds.yield %e : tensor<4x4xf32>
      }
      ds.yield %f : tensor<4x4xf32>
    }
    %n = ds.move %h {ds.work = #ds.work<update>} : !host -> !nvme
    return %n : !nvme
  }
}
