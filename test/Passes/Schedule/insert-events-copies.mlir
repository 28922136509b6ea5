// RUN: ds-opt %s --ds-insert-events | FileCheck %s
// RUN: ds-opt %s --ds-insert-events --ds-verify-collectives > %t

!device = !ds.buffer<tensor<4xf32>, [1], device>
!host = !ds.buffer<tensor<4xf32>, [1], host>

ds.state @a role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
ds.state @b role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
ds.state @h role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<4xf32>
ds.state @g role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<4xf32>

// A store and a load that share nothing run at once.
// CHECK-LABEL: @both_ways
// CHECK-NOT: ds.wait
// CHECK: return
func.func @both_ways(%a: !device {ds.state = @a}, %b: !device {ds.state = @b}, %h: !host {ds.state = @h}, %g: !host {ds.state = @g}) {
  ds.transfer %a to %h on to_host : !device, !host
  ds.transfer %g to %b on to_device : !host, !device
  return
}

// E1: the load of what was stored waits for the store, and the next one of it knows that.
// CHECK-LABEL: @loads_what_was_stored
// CHECK: ds.transfer %{{.*}} on to_host
// CHECK-NEXT: ds.record [[SENT:[0-9]+]] on to_host
// CHECK-NEXT: ds.wait [[SENT]] on to_device
// CHECK-NEXT: ds.transfer %{{.*}} on to_device
// CHECK-NOT: ds.wait
// CHECK: return
func.func @loads_what_was_stored(%a: !device {ds.state = @a}, %b: !device {ds.state = @b}, %h: !host {ds.state = @h}) {
  ds.transfer %a to %h on to_host : !device, !host
  ds.transfer %h to %b on to_device : !host, !device
  ds.transfer %h to %b on to_device : !host, !device
  return
}

// E1: what is stored into the place that is being loaded from waits for the load, and so does what sends on what was loaded.
// CHECK-LABEL: @stores_where_is_loaded_from
// CHECK: ds.transfer %[[H:.*]] to %[[B:.*]] on to_device
// CHECK-NEXT: ds.record [[THERE:[0-9]+]] on to_device
// CHECK-NEXT: ds.wait [[THERE]] on to_host
// CHECK-NEXT: ds.transfer %{{.*}} to %[[H]] on to_host
// CHECK-NEXT: ds.transfer %[[B]] to %{{.*}} on to_host
func.func @stores_where_is_loaded_from(%a: !device {ds.state = @a}, %b: !device {ds.state = @b}, %h: !host {ds.state = @h}, %g: !host {ds.state = @g}) {
  ds.transfer %h to %b on to_device : !host, !device
  ds.transfer %a to %h on to_host : !device, !host
  ds.transfer %b to %g on to_host : !device, !host
  return
}
