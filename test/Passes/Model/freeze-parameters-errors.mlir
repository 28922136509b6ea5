// RUN: ds-opt %s --split-input-file --verify-diagnostics --ds-freeze-parameters="patterns=enc.*"

// No parameter has such a name; buffers are none.
// expected-error@+2 {{--freeze 'enc.*': no parameter has such a name}}
// expected-note@+1 {{the nearest are '*.b', '*.w'}}
module {
  ds.state @encoder.w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
  ds.state @head.b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
  ds.state @enc.mask role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
}

// -----

// Nothing is left, for what is not matched was not trained before.
// expected-error@+2 {{--freeze: all 2 parameters would be frozen, and nothing is left to train}}
// expected-note@+1 {{leave out the pattern that matches those to train}}
module {
  ds.state @enc.w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
  ds.state @head.b role(parameter) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
}

// -----

// expected-error@+2 {{ds-freeze-parameters}}
// expected-note@+1 {{that phase comes later, and nothing leads back}}
module attributes {ds.phase = #ds.phase<step>} {
}
