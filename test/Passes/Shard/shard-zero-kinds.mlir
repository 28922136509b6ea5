// RUN: ds-opt %s --ds-shard-zero | FileCheck %s

// Parameters share a bucket where one body updates both, to the last number: one flat update takes their place. @a and
// @b do; each other one differs from @a in one thing. The learning rate and the decay are scalars of the same type.
// CHECK: ds.bucket @bucket_0 members [@h.0.a, @h.0.b] offsets [0, 32] elements 64
// CHECK: ds.bucket @bucket_1 members [@h.0.constant] offsets
// CHECK: ds.bucket @bucket_2 members [@h.0.scalar] offsets
// CHECK: ds.bucket @bucket_3 members [@h.0.order] offsets
// CHECK: ds.bucket @bucket_4 members [@h.0.reading] offsets
// CHECK: ds.bucket @bucket_5 members [@h.0.type] offsets
// CHECK: ds.bucket @bucket_6 members [@h.0.moment] offsets
// CHECK: ds.bucket @bucket_7 members [@h.0.start] offsets
// CHECK-NOT: ds.bucket
module {
  ds.mesh @mesh axes [dp = 2] samples dp zero dp
  ds.state @lr role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
  ds.state @wd role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
  ds.state @h.0.a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @h.0.b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @h.0.constant role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @h.0.scalar role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @h.0.order role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @h.0.reading role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @h.0.type role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xbf16>
  ds.state @h.0.moment role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @h.0.moment.m role(moment) slot("m") owner(@h.0.moment) init(#ds.init<constant, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @h.0.start role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @h.0.start.m role(moment) slot("m") owner(@h.0.start) init(#ds.init<constant, 0.5, 0.0>) home(device) : tensor<8xf32>
  func.func @last(%x: tensor<8xf32> {ds.input = "x"}, %lr: tensor<f32> {ds.state = @lr},
                  %wd: tensor<f32> {ds.state = @wd}, %a: tensor<8xf32> {ds.state = @h.0.a},
                  %b: tensor<8xf32> {ds.state = @h.0.b}, %constant: tensor<8xf32> {ds.state = @h.0.constant},
                  %scalar: tensor<8xf32> {ds.state = @h.0.scalar}, %order: tensor<8xf32> {ds.state = @h.0.order},
                  %reading: tensor<8xf32> {ds.state = @h.0.reading}, %type: tensor<8xbf16> {ds.state = @h.0.type},
                  %moment: tensor<8xf32> {ds.state = @h.0.moment},
                  %moment_m: tensor<8xf32> {ds.state = @h.0.moment.m}, %start: tensor<8xf32> {ds.state = @h.0.start},
                  %start_m: tensor<8xf32> {ds.state = @h.0.start.m})
      -> (tensor<8xf32> {ds.state = @h.0.a}, tensor<8xf32> {ds.state = @h.0.b},
          tensor<8xf32> {ds.state = @h.0.constant}, tensor<8xf32> {ds.state = @h.0.scalar},
          tensor<8xf32> {ds.state = @h.0.order}, tensor<8xf32> {ds.state = @h.0.reading},
          tensor<8xbf16> {ds.state = @h.0.type}, tensor<8xf32> {ds.state = @h.0.moment},
          tensor<8xf32> {ds.state = @h.0.moment.m}, tensor<8xf32> {ds.state = @h.0.start},
          tensor<8xf32> {ds.state = @h.0.start.m}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %g_a = ds.mul %x, %a {ds.work = #ds.work<backward>} : tensor<8xf32>
    %g_b = ds.mul %x, %b {ds.work = #ds.work<backward>} : tensor<8xf32>
    %g_constant = ds.mul %x, %constant {ds.work = #ds.work<backward>} : tensor<8xf32>
    %g_scalar = ds.mul %x, %scalar {ds.work = #ds.work<backward>} : tensor<8xf32>
    %g_order = ds.mul %x, %order {ds.work = #ds.work<backward>} : tensor<8xf32>
    %g_reading = ds.mul %x, %reading {ds.work = #ds.work<backward>} : tensor<8xf32>
    %wide = ds.convert %type {ds.work = #ds.work<backward>} : tensor<8xbf16> -> tensor<8xf32>
    %g_wide = ds.mul %x, %wide {ds.work = #ds.work<backward>} : tensor<8xf32>
    %g_type = ds.convert %g_wide {ds.work = #ds.work<backward>} : tensor<8xf32> -> tensor<8xbf16>
    %g_moment = ds.mul %x, %moment {ds.work = #ds.work<backward>} : tensor<8xf32>
    %g_start = ds.mul %x, %start {ds.work = #ds.work<backward>} : tensor<8xf32>
    %n_a = ds.update @h.0.a states(%a) gradient(%g_a) scalars(%lr) {ds.work = #ds.work<update>} : (tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32> {
    ^bb0(%p: tensor<8xf32>, %g: tensor<8xf32>, %s: tensor<f32>):
      %r = ds.broadcast %s dims [] : tensor<f32> -> tensor<8xf32>
      %k = ds.constant dense<0.5> : tensor<8xf32>
      %h = ds.mul %r, %k : tensor<8xf32>
      %d = ds.mul %g, %h : tensor<8xf32>
      %q = ds.sub %p, %d : tensor<8xf32>
      ds.yield %q : tensor<8xf32>
    }
    %n_b = ds.update @h.0.b states(%b) gradient(%g_b) scalars(%lr) {ds.work = #ds.work<update>} : (tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32> {
    ^bb0(%p: tensor<8xf32>, %g: tensor<8xf32>, %s: tensor<f32>):
      %r = ds.broadcast %s dims [] : tensor<f32> -> tensor<8xf32>
      %k = ds.constant dense<0.5> : tensor<8xf32>
      %h = ds.mul %r, %k : tensor<8xf32>
      %d = ds.mul %g, %h : tensor<8xf32>
      %q = ds.sub %p, %d : tensor<8xf32>
      ds.yield %q : tensor<8xf32>
    }
    %n_constant = ds.update @h.0.constant states(%constant) gradient(%g_constant) scalars(%lr) {ds.work = #ds.work<update>} : (tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32> {
    ^bb0(%p: tensor<8xf32>, %g: tensor<8xf32>, %s: tensor<f32>):
      %r = ds.broadcast %s dims [] : tensor<f32> -> tensor<8xf32>
      %k = ds.constant dense<0.25> : tensor<8xf32>
      %h = ds.mul %r, %k : tensor<8xf32>
      %d = ds.mul %g, %h : tensor<8xf32>
      %q = ds.sub %p, %d : tensor<8xf32>
      ds.yield %q : tensor<8xf32>
    }
    %n_scalar = ds.update @h.0.scalar states(%scalar) gradient(%g_scalar) scalars(%wd) {ds.work = #ds.work<update>} : (tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32> {
    ^bb0(%p: tensor<8xf32>, %g: tensor<8xf32>, %s: tensor<f32>):
      %r = ds.broadcast %s dims [] : tensor<f32> -> tensor<8xf32>
      %k = ds.constant dense<0.5> : tensor<8xf32>
      %h = ds.mul %r, %k : tensor<8xf32>
      %d = ds.mul %g, %h : tensor<8xf32>
      %q = ds.sub %p, %d : tensor<8xf32>
      ds.yield %q : tensor<8xf32>
    }
    %n_order = ds.update @h.0.order states(%order) gradient(%g_order) scalars(%lr) {ds.work = #ds.work<update>} : (tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32> {
    ^bb0(%p: tensor<8xf32>, %g: tensor<8xf32>, %s: tensor<f32>):
      %r = ds.broadcast %s dims [] : tensor<f32> -> tensor<8xf32>
      %k = ds.constant dense<0.5> : tensor<8xf32>
      %h = ds.mul %r, %k : tensor<8xf32>
      %d = ds.mul %g, %h : tensor<8xf32>
      %q = ds.sub %d, %p : tensor<8xf32>
      ds.yield %q : tensor<8xf32>
    }
    %n_reading = ds.update @h.0.reading states(%reading) gradient(%g_reading) scalars(%lr) {ds.work = #ds.work<update>} : (tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32> {
    ^bb0(%p: tensor<8xf32>, %g: tensor<8xf32>, %s: tensor<f32>):
      %r = ds.broadcast %s dims [] : tensor<f32> -> tensor<8xf32>
      %k = ds.constant dense<0.5> : tensor<8xf32>
      %h = ds.mul %r, %k : tensor<8xf32>
      %d = ds.mul %p, %g : tensor<8xf32>
      %q = ds.sub %p, %d : tensor<8xf32>
      ds.yield %q : tensor<8xf32>
    }
    %n_type = ds.update @h.0.type states(%type) gradient(%g_type) scalars(%lr) {ds.work = #ds.work<update>} : (tensor<8xbf16>, tensor<8xbf16>, tensor<f32>) -> tensor<8xbf16> {
    ^bb0(%p: tensor<8xbf16>, %g: tensor<8xbf16>, %s: tensor<f32>):
      %l = ds.convert %s : tensor<f32> -> tensor<bf16>
      %r = ds.broadcast %l dims [] : tensor<bf16> -> tensor<8xbf16>
      %k = ds.constant dense<0.5> : tensor<8xbf16>
      %h = ds.mul %r, %k : tensor<8xbf16>
      %d = ds.mul %g, %h : tensor<8xbf16>
      %q = ds.sub %p, %d : tensor<8xbf16>
      ds.yield %q : tensor<8xbf16>
    }
    %n_moment:2 = ds.update @h.0.moment states(%moment, %moment_m) gradient(%g_moment) scalars(%lr) {ds.work = #ds.work<update>} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>) {
    ^bb0(%p: tensor<8xf32>, %m: tensor<8xf32>, %g: tensor<8xf32>, %s: tensor<f32>):
      %r = ds.broadcast %s dims [] : tensor<f32> -> tensor<8xf32>
      %k = ds.constant dense<0.5> : tensor<8xf32>
      %h = ds.mul %r, %k : tensor<8xf32>
      %d = ds.mul %g, %h : tensor<8xf32>
      %m1 = ds.add %m, %d : tensor<8xf32>
      %q = ds.sub %p, %m1 : tensor<8xf32>
      ds.yield %q, %m1 : tensor<8xf32>, tensor<8xf32>
    }
    %n_start:2 = ds.update @h.0.start states(%start, %start_m) gradient(%g_start) scalars(%lr) {ds.work = #ds.work<update>} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>) {
    ^bb0(%p: tensor<8xf32>, %m: tensor<8xf32>, %g: tensor<8xf32>, %s: tensor<f32>):
      %r = ds.broadcast %s dims [] : tensor<f32> -> tensor<8xf32>
      %k = ds.constant dense<0.5> : tensor<8xf32>
      %h = ds.mul %r, %k : tensor<8xf32>
      %d = ds.mul %g, %h : tensor<8xf32>
      %m1 = ds.add %m, %d : tensor<8xf32>
      %q = ds.sub %p, %m1 : tensor<8xf32>
      ds.yield %q, %m1 : tensor<8xf32>, tensor<8xf32>
    }
    return %n_a, %n_b, %n_constant, %n_scalar, %n_order, %n_reading, %n_type, %n_moment#0, %n_moment#1, %n_start#0, %n_start#1 :
      tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xbf16>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  }
}
