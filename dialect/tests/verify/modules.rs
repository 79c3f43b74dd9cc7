//! The verifier on generated modules: the whole partition-window table, and shapes that would break
//! anything that recurses or is quadratic.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::{COL_ORDER, OrderTerm, order_words};
use bir_dialect::bir::verify::{Level, VerifyOptions, verify};
use bir_dialect::ir::Ir;
use bir_dialect::text::diag::{Diagnostics, Place};

fn read(text: &str) -> Ir {
    bir_dialect::read(text, Level::Off).unwrap()
}

fn findings(ir: &Ir, level: Level) -> Diagnostics {
    let mut diags = Diagnostics::new();
    let options = VerifyOptions {
        level,
        ..VerifyOptions::default()
    };
    verify(ir, options, &mut diags);
    diags
}

/// The start and size rule of the hardware, as its page states it.
fn is_legal(start: u64, count: u64) -> bool {
    let starts: &[u64] = match count {
        1..=32 => &[0, 32, 64, 96],
        33..=64 => &[0, 64],
        _ => &[0],
    };
    starts.contains(&start) && start + count <= 128
}

/// One `memset` per start and size that fits the location; which of them are refused, by text.
fn refused(base: u64, partitions: u64, statement: &str) -> (Vec<(u64, u64)>, Vec<bool>) {
    let mut windows = Vec::new();
    let mut text = String::from("bir.module @m {\n  bir.func @main {\n");
    let at = if base > 0 {
        format!(" at [{base}, 0x100]")
    } else {
        String::new()
    };
    writeln!(text, "    %t = alloc sbuf<{partitions}x4xf32>{at}").unwrap();
    writeln!(text, "    %x = alloc dram<128x4xf32> {{kind = input}}").unwrap();
    for start in 0..partitions {
        for count in 1..=partitions - start {
            let end = start + count;
            let line = statement.replace("START", &start.to_string());
            let line = line
                .replace("END", &end.to_string())
                .replace("COUNT", &count.to_string());
            writeln!(text, "    {line}").unwrap();
            windows.push((start, count));
        }
    }
    text.push_str("  }\n}\n");
    let ir = read(&text);
    let lines: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    let mut bad = vec![false; windows.len()];
    for finding in findings(&ir, Level::Default).iter() {
        let Place::Op(op, _) = finding.place else {
            panic!("{finding:?}")
        };
        let offset = ir.span(op).unwrap();
        let line = lines.partition_point(|&end| end < offset);
        bad[line - 4] = true;
    }
    (windows, bad)
}

#[test]
fn partition_windows_of_compute_operands_follow_the_whole_table() {
    let (windows, bad) = refused(0, 128, "memset %t[START:END, :] <- 0.0");
    assert_eq!(windows.len(), 128 * 129 / 2);
    for (&(start, count), &bad) in windows.iter().zip(&bad) {
        assert_eq!(bad, !is_legal(start, count), "{start}+{count}");
    }
}

#[test]
fn partition_windows_apply_to_base_partition_plus_window() {
    for base in [16, 32, 48, 64, 96] {
        let (windows, bad) = refused(base, 128 - base, "memset %t[START:END, :] <- 0.0");
        for (&(start, count), &bad) in windows.iter().zip(&bad) {
            assert_eq!(
                bad,
                !is_legal(base + start, count),
                "{base}+{start}+{count}"
            );
        }
    }
}

#[test]
fn dma_sides_start_anywhere() {
    let (_, bad) = refused(0, 128, "load %t[START:END, :] <- %x[START:END, :]");
    assert!(bad.iter().all(|bad| !bad));
}

fn timed<T>(what: &str, limit: Duration, run: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = run();
    // Generous: machines of the suite are shared; quadratic would take minutes.
    assert!(start.elapsed() < limit, "{what} took {:?}", start.elapsed());
    result
}

#[test]
fn a_hundred_thousand_blocks_in_a_chain_are_fast() {
    let mut text = String::from(
        "bir.module @m {\n  bir.func @main {\n    %t = alloc sbuf<1x1xi32>\n    %r = register_move <- 1\n    br ^b0\n",
    );
    let count = 100_000;
    for i in 0..count {
        writeln!(text, "  ^b{i}:\n    register_store %t[0:1, 0:1] <- %r").unwrap();
        if i + 1 < count {
            writeln!(text, "    br ^b{}", i + 1).unwrap();
        }
    }
    text.push_str("  }\n}\n");
    let ir = read(&text);
    let diags = timed("verifying", Duration::from_secs(10), || {
        findings(&ir, Level::Full)
    });
    assert!(diags.is_empty(), "{:?}", diags.iter().next());
}

#[test]
fn ten_thousand_nested_loops_take_no_stack() {
    let depth = 10_000;
    let mut text =
        String::from("bir.module @m {\n  bir.func @main {\n    %t = alloc sbuf<128x4xf32>\n");
    for i in 0..depth {
        writeln!(text, "loop %i{i} = 0 to 1 {{").unwrap();
    }
    text.push_str("memset %t[:, %i0 +: 4] <- 0.0\n");
    text.push_str(&"}\n".repeat(depth));
    text.push_str("  }\n}\n");
    let ir = read(&text);
    let diags = timed("verifying", Duration::from_secs(10), || {
        findings(&ir, Level::Full)
    });
    assert!(diags.is_empty(), "{:?}", diags.iter().next());
}

#[test]
fn all_findings_come_in_one_run() {
    let mut text = String::from(
        "bir.module @m {\n  bir.func @main {\n    %x = alloc dram<128x4xf32> {kind = input}\n",
    );
    for i in 0..12 {
        writeln!(text, "    %t{i} = alloc sbuf<128x4xf32>").unwrap();
    }
    text.push_str("    %y = alloc dram<128x4xf32>\n");
    for i in 0..12 {
        writeln!(text, "    save %y <- %t{i}").unwrap();
    }
    text.push_str("  }\n}\n");
    let ir = read(&text);
    let diags = findings(&ir, Level::Full);
    assert_eq!(diags.errors(), 12);
    for (i, finding) in diags.iter().enumerate() {
        assert!(
            finding.message.contains(&format!("`%t{i}`")),
            "{}",
            finding.message
        );
    }
    assert!(findings(&ir, Level::Default).is_empty());
    assert!(findings(&ir, Level::Off).is_empty());
}

#[test]
fn coordinates_name_indices_the_instruction_has() {
    let mut ir = read(
        "bir.module @m {\n bir.func @f {\n %t = alloc sbuf<128x4xf32>\n loop %i = 0 to 4 {\n memset %t <- 0.0 {order = [2*%i + 1]}\n }\n }\n}\n",
    );
    assert!(findings(&ir, Level::Default).is_empty());
    let op = ir
        .walk()
        .ops()
        .find(|&op| OpCode::of(&ir, op) == Some(OpCode::Memset))
        .unwrap();
    let wrong = OrderTerm {
        constant: 0,
        terms: [(1, 2)].into_iter().collect(),
    };
    ir.set_words_cell(COL_ORDER, op, Some(&order_words(&[wrong])));
    let diags = findings(&ir, Level::Default);
    let found: Vec<&str> = diags.iter().map(|found| &*found.message).collect();
    assert_eq!(
        found,
        [
            "coordinate 0 of `order` of `memset` names loop index d1, but the operation has 1 index operand"
        ]
    );
}

#[test]
fn a_cycle_of_a_hundred_thousand_dependences_is_one_finding() {
    let count = 100_000;
    let mut text = String::from("bir.module @m {\n bir.func @f {\n %t = alloc sbuf<1x1xf32>\n");
    for i in 0..count {
        let next = (i + 1) % count;
        writeln!(
            text,
            "memset %t <- 0.0 {{id = {i}, deps = [output {next}]}}"
        )
        .unwrap();
    }
    text.push_str("}\n}\n");
    let ir = read(&text);
    let diags = timed("verifying", Duration::from_secs(10), || {
        findings(&ir, Level::Default)
    });
    let found: Vec<&str> = diags.iter().map(|found| &*found.message).collect();
    assert_eq!(
        found,
        [
            "dependences form a cycle: 0 -> 1 -> 2 -> 3 -> 4 -> 5 -> … -> 99994 -> 99995 -> 99996 -> 99997 -> 99998 -> 99999 -> 0, 100000 instructions"
        ]
    );
}

#[test]
fn shared_bytes_by_the_thousand_take_no_quadratic_time() {
    let count = 50_000;
    let mut text = String::from("bir.module @m {\n bir.func @f {\n");
    for i in 0..count {
        let next = i + 1;
        writeln!(
            text,
            "%a{i} = alloc sbuf<1x2xf32> {{must_alias = @a{next}}}"
        )
        .unwrap();
    }
    writeln!(text, "%a{count} = alloc sbuf<1x2xf32>").unwrap();
    writeln!(text, "memset %a7 <- 0.0\ntensor_copy %a{count} <- %a0").unwrap();
    writeln!(text, "tensor_copy %a{count}[:, 0:1] <- %a9[:, 0:1]").unwrap();
    writeln!(
        text,
        "transpose %a{count}[:, 0:1] <- %a9[:, 0:1] {{engine = dve}}"
    )
    .unwrap();
    text.push_str("}\n}\n");
    let ir = read(&text);
    let diags = timed("verifying", Duration::from_secs(10), || {
        findings(&ir, Level::Default)
    });
    let found: Vec<&str> = diags.iter().map(|found| &*found.message).collect();
    assert_eq!(
        found,
        [
            "operand `src` of `transpose` reads the bytes of `%a50000` and `%a9` that `dst` writes, which `transpose` does not do in place"
        ]
    );
}
