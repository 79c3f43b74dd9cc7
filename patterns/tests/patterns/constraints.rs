//! What the named constraints say of programs.

use crate::common::{library, run};
use bir_patterns::Settings;

const TILES: &str = "
    %x = alloc sbuf<4x8xf32>
    %y = alloc sbuf<4x8xf32>
    %z = alloc sbuf<4x8xf32>
    %w = alloc sbuf<4x4xf32>
    %v = alloc sbuf<4x4xf32>
    %c = alloc sbuf<4x1xf32>
";

/// Whether a rule about one `tensor_tensor` fires under a condition.
fn holds(condition: &str, body: &str) -> bool {
    let rule = format!(
        "set s single_shot;
        pattern p {{
          match {{ tensor_tensor add %d <- %a, %b; }}
          where {{ {condition} }}
          rewrite {{ tensor_tensor subtract %d <- %a, %b; }}
        }}"
    );
    let body = format!("{TILES}{body}");
    let (_, report) = run(&library(&rule), "s", &body, &Settings::default());
    assert!(report.error.is_none(), "{:?}", report.error);
    report.applied == 1
}

#[test]
fn covers_is_about_bytes() {
    let covers = |line: &str| holds("covers(%a, %b)", line);
    assert!(covers("tensor_tensor add %y <- %x, %x"));
    assert!(covers(
        "tensor_tensor add %y[:, 0:4] <- %x[:, 0:4], %x[p 0:4, off 3, -1 x 4]"
    ));
    assert!(!covers(
        "tensor_tensor add %y[:, 0:4] <- %x[:, 0:4], %x[:, 1:5]"
    ));
    assert!(!covers("tensor_tensor add %y <- %x, %z"));
}

/// A dense constant of the elements of a 4 by 4 matrix.
fn matrix(element: impl Fn(usize, usize) -> f32) -> String {
    let bytes = (0..16).flat_map(|at| element(at / 4, at % 4).to_le_bytes());
    let hex: String = bytes.map(|byte| format!("{byte:02X}")).collect();
    format!("%k = alloc dram<4x4xf32> {{kind = const, value = dense<\"0x{hex}\">}}\n")
}

#[test]
fn an_identity_matrix_is_known_through_copies_of_all_of_it() {
    let one = |row, column| if row == column { 1.0 } else { 0.0 };
    let last = |row, column| match (row, column) {
        (3, 3) => 2.0,
        _ => one(row, column),
    };
    let is = |constant: &str, lines: &str| {
        let body = format!("{constant}{lines}\ntensor_tensor add %w <- %v, %w");
        holds("identity_matrix(%b)", &body)
    };
    assert!(is(&matrix(one), "load %w <- %k"));
    assert!(is(&matrix(one), "load %v <- %k\ntensor_copy %w <- %v"));
    assert!(!is(&matrix(last), "load %w <- %k"));
    assert!(!is(&matrix(|_, _| 1.0), "load %w <- %k"));
    // Its columns were turned round, or it was overwritten in part.
    assert!(!is(
        &matrix(one),
        "load %w[:, 0:4] <- %k[off 3, 4 x 4, -1 x 4]"
    ));
    assert!(!is(&matrix(one), "load %w <- %k\nmemset %w[:, 0:1] <- 0.0"));
    assert!(!is("", "memset %w <- 1.0"));
}

#[test]
fn an_accumulator_is_free_where_nobody_goes_on_with_it() {
    let rule = "set s single_shot;
        pattern p {
          match { activation exp %y <- %x; }
          where { accumulator_free(%y) }
          rewrite { activation exp %y <- %x {reduce = add, reduce_cmd = reset}; }
        }";
    let fires = |body: &str| {
        let body = format!("{TILES}{body}");
        let (_, report) = run(&library(rule), "s", &body, &Settings::default());
        assert!(report.error.is_none(), "{:?}", report.error);
        report.applied == 1
    };
    let exp = "activation exp %y <- %x\n";
    let reset = "activation copy %z, reduce add reset %c <- %x\n";
    let go_on = "activation copy %z, reduce add accumulate %c <- %x\n";
    let read = "read_activation_accumulator %c\n";
    assert!(fires(exp));
    assert!(fires(&format!("{reset}{read}{exp}")));
    assert!(fires(&format!("{exp}{reset}{read}")));
    assert!(!fires(&format!("{reset}{exp}{read}")));
    assert!(!fires(&format!("{reset}{exp}{go_on}")));
    // The vector engine has an accumulator of its own.
    assert!(fires(&format!(
        "{exp}tensor_scalar_reduce add %z, reduce add reset %c <- %x, 1.0"
    )));
    // In a loop, what stands before comes behind as well.
    assert!(!fires(&format!("loop %i = 0 to 2 {{\n{go_on}{exp}}}")));
    assert!(!fires(&format!("{exp}loop %i = 0 to 2 {{\n{read}}}")));
}

/// Who goes on with an accumulator is known of what rules made, too.
#[test]
fn an_accumulator_is_taken_by_what_rules_made() {
    let rules = |second: &str| {
        format!(
            "set s single_shot;
            pattern ask {{
              match {{ activation copy %y <- %x; }}
              where {{ accumulator_free(%y) }}
              rewrite {{ tensor_copy %y <- %x; }}
            }}
            {second}
            pattern p {{
              match {{ activation exp %y <- %x; }}
              where {{ accumulator_free(%y) }}
              rewrite {{ activation exp %y <- %x {{reduce = add, reduce_cmd = reset}}; }}
            }}"
        )
    };
    let fires = |second: &str, behind: &str| {
        let body = format!("{TILES}activation copy %z <- %x\nactivation exp %y <- %x\n{behind}");
        let (lines, report) = run(&library(&rules(second)), "s", &body, &Settings::default());
        assert!(report.error.is_none(), "{:?}", report.error);
        let exp = lines.iter().find(|line| line.contains(" exp "));
        exp.unwrap().contains("reset")
    };
    let taken = "pattern m {
        match { memset %c <- 3.0; }
        rewrite { read_activation_accumulator %c; }
    }";
    let freed = "pattern m {
        match { read_activation_accumulator %c; }
        rewrite { memset %c <- 3.0; }
    }";
    assert!(fires("", "memset %c <- 3.0"));
    assert!(!fires(taken, "memset %c <- 3.0"));
    assert!(!fires("", "read_activation_accumulator %c"));
    assert!(fires(freed, "read_activation_accumulator %c"));
}
