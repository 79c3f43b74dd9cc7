set wrong greedy;

rewrite times_zero "x * 0 = 0" : (multiply ?x (splat 0.0)) => (splat 0.0) where f32(?x);

rewrite plus_zero "x + 0 = x" : (add ?x (splat 0.0)) => ?x where f32(?x);

rewrite minus_itself "x - x = 0" : (subtract ?x ?x) => (splat 0.0) where f32(?x);

rewrite plus_minus_zero "x + -0 = x" : (add ?x (splat -0.0)) => ?x where f32(?x);
