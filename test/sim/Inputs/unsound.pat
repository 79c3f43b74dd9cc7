set unsound greedy;
/// Wrong on purpose.
rewrite times_two "x * 2 = x" : (multiply ?x (splat 2.0)) => ?x;
