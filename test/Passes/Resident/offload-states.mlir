// RUN: ds-opt %s --ds-offload-states | FileCheck %s
// RUN: sed 's/5.0e-01/1.0/; s/parameters = false/parameters = true/' %s | ds-opt --ds-offload-states - | FileCheck %s --check-prefix=ALL

// Half of 40 + 24 + 8 = 72 elements are 36: @w is too large, @v and @b are not. All that belongs to one has one home.
// CHECK: ds.choices = ["optimizer states of 32 of 72 elements of a rank are kept on the host"]
// ALL: optimizer states of 72 of 72 elements
// ALL-SAME: parameters of 72 elements
module attributes {ds.phase = #ds.phase<sharded>, ds.training = {offload = {optimizer = 5.0e-01 : f64, parameters = false}}} {
  // CHECK: ds.state @w {{.*}} home (device)
  // ALL: ds.state @w {{.*}} home (host)
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<40xf32>
  // CHECK: ds.state @v {{.*}} home (device)
  ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<24xf32>
  // CHECK: ds.state @b {{.*}} home (device)
  ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  // CHECK: ds.state @w.exp_avg {{.*}} home (device)
  // ALL: ds.state @w.exp_avg {{.*}} home (host)
  ds.state @w.exp_avg role(moment) slot("exp_avg") owner(@w) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<40xf32>
  // CHECK: ds.state @v.exp_avg {{.*}} home (host)
  ds.state @v.exp_avg role(moment) slot("exp_avg") owner(@v) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<24xf32>
  // CHECK: ds.state @v.grad {{.*}} home (host)
  ds.state @v.grad role(gradient) slot("grad") owner(@v) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<24xf32>
  // CHECK: ds.state @b.exp_avg {{.*}} home (host)
  ds.state @b.exp_avg role(moment) slot("exp_avg") owner(@b) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  // Scalars stay: the host reads them after a step.
  // ALL: ds.state @lr {{.*}} home (device)
  ds.state @lr role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
}
