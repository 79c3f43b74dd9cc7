/// Identities of elementwise arithmetic: an operation that changes nothing is a copy.
///
/// Arithmetic goes through f32, so a 32-bit integer is not what it was (exact_in_f32), and what the
/// result is stored as rounds once either way.
set identities greedy;

/// Not `x + 0.0`, which makes +0.0 of -0.0.
rewrite add_negative_zero "x + -0 = x" : (add ?x (splat -0.0)) => ?x where exact_in_f32(?x);

rewrite subtract_zero "x - 0 = x" : (subtract ?x (splat 0.0)) => ?x where exact_in_f32(?x);

rewrite multiply_one "x * 1 = x" : (multiply ?x (splat 1.0)) => ?x where exact_in_f32(?x);

rewrite divide_one "x / 1 = x" : (divide ?x (splat 1.0)) => ?x where exact_in_f32(?x);
