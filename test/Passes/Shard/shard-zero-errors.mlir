// RUN: ds-opt %s --split-input-file --verify-diagnostics --ds-shard-zero

// expected-error@+1 {{optimizer lamb on 2 ranks is not supported: its step needs norms of whole parameters}}
module attributes {ds.training = #ds.training<optimizer = {type = lamb}>} {
  ds.mesh @mesh axes [dp = 2] samples dp zero dp
  func.func @last() attributes {ds.segment = #ds.segment<forward, backward, update>} {
    return
  }
}

// -----

// An update whose result is read by something else has no flat form.
module {
  ds.mesh @mesh axes [dp = 2] samples dp zero dp
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  func.func @last(%x: tensor<8xf32> {ds.input = "x"}, %w: tensor<8xf32> {ds.state = @w}) -> (tensor<8xf32> {ds.state = @w})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %g = ds.mul %x, %w {ds.work = #ds.work<backward>} : tensor<8xf32>
    // expected-error@+1 {{expects results that states are given and nothing else reads}}
    %n = ds.update @w states(%w) gradient(%g) {ds.work = #ds.work<update>} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%p: tensor<8xf32>, %d: tensor<8xf32>):
      %r = ds.sub %p, %d : tensor<8xf32>
      ds.yield %r : tensor<8xf32>
    }
    %m = ds.neg %n {ds.work = #ds.work<update>} : tensor<8xf32>
    return %m : tensor<8xf32>
  }
}

// -----

module {
  ds.mesh @mesh axes [dp = 2] samples dp zero dp
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  func.func @last(%x: tensor<8xf32> {ds.input = "x"}, %w: tensor<8xf32> {ds.state = @w}) -> (tensor<8xf32> {ds.state = @w})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %g = ds.mul %x, %w {ds.work = #ds.work<backward>} : tensor<8xf32>
    // expected-error@+1 {{expects states that are arguments of its function, but got}}
    %n = ds.update @w states(%g) gradient(%g) {ds.work = #ds.work<update>} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%p: tensor<8xf32>, %d: tensor<8xf32>):
      %r = ds.sub %p, %d : tensor<8xf32>
      ds.yield %r : tensor<8xf32>
    }
    return %n : tensor<8xf32>
  }
}

// -----

// What is kept of earlier micro-steps enters the gradient by an addition alone.
module {
  ds.mesh @mesh axes [dp = 2] samples dp zero dp
  // expected-error@+1 {{expects its gradient in @last to be a ds.accumulate into @w.grad}}
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @w.grad role(gradient) slot("grad") owner(@w) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  func.func @last(%x: tensor<8xf32> {ds.input = "x"}, %w: tensor<8xf32> {ds.state = @w}, %a: tensor<8xf32> {ds.state = @w.grad})
      -> (tensor<8xf32> {ds.state = @w}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %g = ds.mul %x, %w {ds.work = #ds.work<backward>} : tensor<8xf32>
    %s = ds.max %a, %g {ds.work = #ds.work<backward>} : tensor<8xf32>
    %n = ds.update @w states(%w) gradient(%s) {ds.work = #ds.work<update>} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%p: tensor<8xf32>, %d: tensor<8xf32>):
      %r = ds.sub %p, %d : tensor<8xf32>
      ds.yield %r : tensor<8xf32>
    }
    return %n : tensor<8xf32>
  }
}

// -----

// A norm of something else than what is updated by.
module {
  ds.mesh @mesh axes [dp = 2] samples dp zero dp
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @norm role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f64>
  func.func @last(%x: tensor<8xf32> {ds.input = "x"}, %w: tensor<8xf32> {ds.state = @w})
      -> (tensor<8xf32> {ds.state = @w}, tensor<f64> {ds.state = @norm}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %g = ds.mul %x, %w {ds.work = #ds.work<backward>} : tensor<8xf32>
    // expected-error@+1 {{expects one sum over the squares of all gradients that are updated by}}
    %q = ds.sum_of_squares %x {ds.work = #ds.work<update>} : tensor<8xf32> -> tensor<f64>
    %n = ds.update @w states(%w) gradient(%g) {ds.work = #ds.work<update>} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%p: tensor<8xf32>, %d: tensor<8xf32>):
      %r = ds.sub %p, %d : tensor<8xf32>
      ds.yield %r : tensor<8xf32>
    }
    return %n, %q : tensor<8xf32>, tensor<f64>
  }
}

// -----

// Ranks would count different samples.
module {
  ds.mesh @mesh axes [dp = 2] samples dp zero dp
  // expected-error@+1 {{expects a buffer that ranks agree on, but @last gives it integers that depend on the data}}
  ds.state @seen role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xi64>
  func.func @last(%x: tensor<8xi64> {ds.input = "x"}, %s: tensor<8xi64> {ds.state = @seen}) -> (tensor<8xi64> {ds.state = @seen})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %n = ds.add %s, %x {ds.work = #ds.work<backward>} : tensor<8xi64>
    return %n : tensor<8xi64>
  }
}

// -----

// A generator whose counter depends on itself otherwise.
module {
  ds.mesh @mesh axes [dp = 2] samples dp zero dp
  // expected-error@+1 {{expects a generator that ds.advance moves on in @last}}
  ds.state @rng role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2xi64>
  func.func @last(%rng: tensor<2xi64> {ds.state = @rng}) -> (tensor<2xi64> {ds.state = @rng}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %u = ds.random_uniform %rng id 3 first 0 {ds.work = #ds.work<backward>} : tensor<2xi64> -> tensor<4xf32>
    %n = ds.mul %rng, %rng {ds.work = #ds.work<backward>} : tensor<2xi64>
    return %n : tensor<2xi64>
  }
}

// -----

// A norm of one gradient of two: the other would join it in the buckets.
module {
  ds.mesh @mesh axes [dp = 2] samples dp zero dp
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @norm role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f64>
  func.func @last(%x: tensor<8xf32> {ds.input = "x"}, %w: tensor<8xf32> {ds.state = @w}, %v: tensor<8xf32> {ds.state = @v})
      -> (tensor<8xf32> {ds.state = @w}, tensor<8xf32> {ds.state = @v}, tensor<f64> {ds.state = @norm}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %g = ds.mul %x, %w {ds.work = #ds.work<backward>} : tensor<8xf32>
    %h = ds.mul %x, %v {ds.work = #ds.work<backward>} : tensor<8xf32>
    // expected-error@+1 {{expects one sum over the squares of all gradients that are updated by}}
    %q = ds.sum_of_squares %g {ds.work = #ds.work<update>} : tensor<8xf32> -> tensor<f64>
    %n = ds.update @w states(%w) gradient(%g) {ds.work = #ds.work<update>} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%p: tensor<8xf32>, %d: tensor<8xf32>):
      %r = ds.sub %p, %d : tensor<8xf32>
      ds.yield %r : tensor<8xf32>
    }
    %m = ds.update @v states(%v) gradient(%h) {ds.work = #ds.work<update>} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%p: tensor<8xf32>, %d: tensor<8xf32>):
      %r = ds.sub %p, %d : tensor<8xf32>
      ds.yield %r : tensor<8xf32>
    }
    return %n, %m, %q : tensor<8xf32>, tensor<8xf32>, tensor<f64>
  }
}

// -----

// A norm of each gradient, and no sum of both.
module {
  ds.mesh @mesh axes [dp = 2] samples dp zero dp
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @wn role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f64>
  ds.state @vn role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f64>
  func.func @last(%x: tensor<8xf32> {ds.input = "x"}, %w: tensor<8xf32> {ds.state = @w}, %v: tensor<8xf32> {ds.state = @v})
      -> (tensor<8xf32> {ds.state = @w}, tensor<8xf32> {ds.state = @v}, tensor<f64> {ds.state = @wn}, tensor<f64> {ds.state = @vn})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %g = ds.mul %x, %w {ds.work = #ds.work<backward>} : tensor<8xf32>
    %h = ds.mul %x, %v {ds.work = #ds.work<backward>} : tensor<8xf32>
    // expected-error@+1 {{expects one sum over the squares of all gradients that are updated by}}
    %q = ds.sum_of_squares %g {ds.work = #ds.work<update>} : tensor<8xf32> -> tensor<f64>
    %k = ds.sum_of_squares %h {ds.work = #ds.work<update>} : tensor<8xf32> -> tensor<f64>
    %n = ds.update @w states(%w) gradient(%g) {ds.work = #ds.work<update>} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%p: tensor<8xf32>, %d: tensor<8xf32>):
      %r = ds.sub %p, %d : tensor<8xf32>
      ds.yield %r : tensor<8xf32>
    }
    %m = ds.update @v states(%v) gradient(%h) {ds.work = #ds.work<update>} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%p: tensor<8xf32>, %d: tensor<8xf32>):
      %r = ds.sub %p, %d : tensor<8xf32>
      ds.yield %r : tensor<8xf32>
    }
    return %n, %m, %q, %k : tensor<8xf32>, tensor<8xf32>, tensor<f64>, tensor<f64>
  }
}

// -----

// A parameter that is updated, but that no segment takes.
module {
  ds.mesh @mesh axes [dp = 2] samples dp zero dp
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @m role(master) slot("master") owner(@w) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  func.func @last(%x: tensor<8xf32> {ds.input = "x"}, %m: tensor<8xf32> {ds.state = @m}) -> (tensor<8xf32> {ds.state = @m})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    // expected-error@+1 {{expects a parameter that its function reads, but got @w}}
    %n = ds.update @w states(%m) gradient(%x) {ds.work = #ds.work<update>} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%p: tensor<8xf32>, %d: tensor<8xf32>):
      %r = ds.sub %p, %d : tensor<8xf32>
      ds.yield %r : tensor<8xf32>
    }
    return %n : tensor<8xf32>
  }
}

// -----

// Accumulation without a place for it.
module attributes {ds.training = #ds.training<gradient_accumulation_steps = 2>} {
  ds.mesh @mesh axes [dp = 2] samples dp zero dp
  // expected-error@+1 {{expects a gradient state, but got none}}
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  func.func @first(%x: tensor<8xf32> {ds.input = "x"}, %w: tensor<8xf32> {ds.state = @w}) attributes {ds.segment = #ds.segment<forward, backward>} {
    return
  }
  func.func @last(%x: tensor<8xf32> {ds.input = "x"}, %w: tensor<8xf32> {ds.state = @w}) -> (tensor<8xf32> {ds.state = @w})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %g = ds.mul %x, %w {ds.work = #ds.work<backward>} : tensor<8xf32>
    %n = ds.update @w states(%w) gradient(%g) {ds.work = #ds.work<update>} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%p: tensor<8xf32>, %d: tensor<8xf32>):
      %r = ds.sub %p, %d : tensor<8xf32>
      ds.yield %r : tensor<8xf32>
    }
    return %n : tensor<8xf32>
  }
}

// -----

module attributes {ds.training = #ds.training<gradient_accumulation_steps = 2>} {
  ds.mesh @mesh axes [dp = 2] samples dp zero dp
  // expected-error@+1 {{expects @first to keep its gradient, but got none}}
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @w.grad role(gradient) slot("grad") owner(@w) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  func.func @first(%x: tensor<8xf32> {ds.input = "x"}, %w: tensor<8xf32> {ds.state = @w}) attributes {ds.segment = #ds.segment<forward, backward>} {
    return
  }
  func.func @last(%x: tensor<8xf32> {ds.input = "x"}, %w: tensor<8xf32> {ds.state = @w}, %a: tensor<8xf32> {ds.state = @w.grad})
      -> (tensor<8xf32> {ds.state = @w}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %g = ds.mul %x, %w {ds.work = #ds.work<backward>} : tensor<8xf32>
    %s = ds.add %a, %g {ds.work = #ds.work<backward>} : tensor<8xf32>
    %n = ds.update @w states(%w) gradient(%s) {ds.work = #ds.work<update>} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%p: tensor<8xf32>, %d: tensor<8xf32>):
      %r = ds.sub %p, %d : tensor<8xf32>
      ds.yield %r : tensor<8xf32>
    }
    return %n : tensor<8xf32>
  }
}

// -----

// A generator that goes on by what the data says: ranks would part.
module {
  ds.mesh @mesh axes [dp = 2] samples dp zero dp
  // expected-error@+1 {{expects a generator that ds.advance moves on in @last}}
  ds.state @rng role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2xi64>
  func.func @last(%x: tensor<2xi64> {ds.input = "x"}, %rng: tensor<2xi64> {ds.state = @rng}) -> (tensor<2xi64> {ds.state = @rng})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %u = ds.random_uniform %rng id 3 first 0 {ds.work = #ds.work<backward>} : tensor<2xi64> -> tensor<4xf32>
    %y = ds.mul %x, %x {ds.work = #ds.work<backward>} : tensor<2xi64>
    %n = ds.add %rng, %y {ds.work = #ds.work<backward>} : tensor<2xi64>
    return %n : tensor<2xi64>
  }
}

// -----

// A result that goes to its state, but is read as well.
module {
  ds.mesh @mesh axes [dp = 2] samples dp zero dp
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @seen role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  func.func @last(%x: tensor<8xf32> {ds.input = "x"}, %w: tensor<8xf32> {ds.state = @w})
      -> (tensor<8xf32> {ds.state = @w}, tensor<8xf32> {ds.state = @seen}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %g = ds.mul %x, %w {ds.work = #ds.work<backward>} : tensor<8xf32>
    // expected-error@+1 {{expects results that states are given and nothing else reads}}
    %n = ds.update @w states(%w) gradient(%g) {ds.work = #ds.work<update>} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%p: tensor<8xf32>, %d: tensor<8xf32>):
      %r = ds.sub %p, %d : tensor<8xf32>
      ds.yield %r : tensor<8xf32>
    }
    %m = ds.neg %n {ds.work = #ds.work<update>} : tensor<8xf32>
    return %n, %m : tensor<8xf32>, tensor<8xf32>
  }
}
