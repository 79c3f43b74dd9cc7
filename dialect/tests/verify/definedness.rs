//! The verifier's fast definedness of straight code and loops says what the memory index says.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use bir_dialect::analysis::index::{Frames, FunctionIndex};
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::verify::{Level, VerifyOptions, verify};
use bir_dialect::ir::{Ir, Op, Value};
use bir_dialect::text::diag::{Diagnostics, Part, Place};

fn read(text: &str) -> Option<Ir> {
    bir_dialect::read(text, Level::Off).ok()
}

/// Locations read undefined, and outputs not written in full.
type Found = (BTreeSet<String>, BTreeSet<String>);

fn name(ir: &Ir, value: Value) -> String {
    ir.value_name(value)
        .map_or_else(String::new, |name| ir.ctx.text(name).to_owned())
}

fn by_verifier(ir: &Ir) -> Option<Found> {
    let run = |level| {
        let mut diags = Diagnostics::new();
        verify(
            ir,
            VerifyOptions {
                level,
                ..VerifyOptions::default()
            },
            &mut diags,
        );
        diags
    };
    // Other findings keep the function from being looked at.
    if run(Level::Default).has_errors() {
        return None;
    }
    let (mut reads, mut outputs) = Found::default();
    for finding in run(Level::Full).iter() {
        let message = &finding.message;
        match finding.place {
            Place::Op(op, Part::Operand(position))
                if message.contains("nothing has written")
                    || message.contains("nothing has overwritten") =>
            {
                reads.insert(name(ir, ir.operands(op)[position].value));
            }
            Place::Op(op, _) if message.contains("never written") => {
                outputs.insert(name(ir, ir.result(op).unwrap()));
            }
            _ => {}
        }
    }
    Some((reads, outputs))
}

fn by_index(ir: &Ir, func: Op) -> Found {
    let index = FunctionIndex::build(ir, func, Frames::Locations);
    let reads = index
        .undefined_reads()
        .iter()
        .map(|read| name(ir, read.value))
        .collect();
    let outputs = index
        .unwritten_outputs()
        .iter()
        .map(|output| name(ir, output.value))
        .collect();
    (reads, outputs)
}

/// The functions of a file, unless control branches in one.
fn straight_functions(ir: &Ir) -> Option<Vec<Op>> {
    let branches = ir.walk().ops().any(|op| {
        ir.regions(op)
            .iter()
            .any(|&region| ir.entry(region) != ir.last_block(region))
    });
    let funcs: Vec<Op> = ir
        .walk()
        .ops()
        .filter(|&op| OpCode::of(ir, op) == Some(OpCode::Func))
        .collect();
    (!branches).then_some(funcs)
}

fn compare(what: &str, text: &str) -> bool {
    let Some(ir) = read(text) else { return false };
    let Some(funcs) = straight_functions(&ir) else {
        return false;
    };
    let Some(found) = by_verifier(&ir) else {
        return false;
    };
    let mut expected = Found::default();
    for func in funcs {
        let (reads, outputs) = by_index(&ir, func);
        expected.0.extend(reads);
        expected.1.extend(outputs);
    }
    assert_eq!(found, expected, "{what}:\n{text}");
    true
}

#[test]
fn on_the_files_of_the_suite() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../test");
    let mut compared = 0;
    for folder in ["kernels", "dialect", "verify"] {
        let mut paths: Vec<_> = fs::read_dir(root.join(folder))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        paths.sort();
        for path in paths
            .iter()
            .filter(|path| path.extension().is_some_and(|ext| ext == "bir"))
        {
            let text = fs::read_to_string(path).unwrap();
            for chunk in text.split("// -----") {
                // The verifier also names tables nobody wrote, of which data decides what is read.
                if chunk.contains("_index %") {
                    continue;
                }
                compared += usize::from(compare(&path.display().to_string(), chunk));
            }
        }
    }
    assert!(compared > 20, "only {compared} chunks were compared");
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }

    fn range(&mut self, size: u64) -> (u64, u64) {
        let start = self.below(size);
        (start, start + 1 + self.below(size - start))
    }
}

/// Loads and saves of windows of tiles, some moved by the indices of loops around them.
fn program(seed: u64) -> String {
    let mut random = Random(seed);
    let mut text = String::from(
        "bir.module @m {\n  bir.func @main {\n    %x = alloc dram<128x16xf32> {kind = input}\n    %y = alloc dram<128x16xf32> {kind = output}\n    %z = alloc dram<128x16xf32>\n",
    );
    for tile in ["a", "b", "c"] {
        writeln!(text, "    %{tile} = alloc sbuf<128x16xf32>").unwrap();
    }
    let mut loops: Vec<u64> = Vec::new();
    for _ in 0..4 + random.below(14) {
        match random.below(7) {
            0 if loops.len() < 3 => {
                let trips = 1 + random.below(3);
                writeln!(text, "loop %i{} = 0 to {trips} {{", loops.len()).unwrap();
                loops.push(trips);
            }
            1 if !loops.is_empty() => {
                loops.pop();
                text.push_str("}\n");
            }
            choice => {
                let tile = ["a", "b", "c"][random.below(3) as usize];
                let dram = ["y", "z"][random.below(2) as usize];
                let (rows, cols) = (random.range(128), random.range(16));
                let rows = format!("{}:{}", rows.0, rows.1);
                let cols = match (loops.len(), random.below(3)) {
                    (1.., 0) => {
                        let at = random.below(loops.len() as u64);
                        format!("4*%i{at} +: 4")
                    }
                    (1.., 1) => {
                        let at = random.below(loops.len() as u64);
                        format!("4*%i{at} +: 3")
                    }
                    _ if random.below(3) == 0 => format!("{}::2", cols.0),
                    _ if random.below(2) == 0 => ":".to_owned(),
                    _ => format!("{}:{}", cols.0, cols.1),
                };
                let rows = if random.below(2) == 0 {
                    ":".to_owned()
                } else {
                    rows
                };
                match choice {
                    2 => writeln!(
                        text,
                        "save %{dram}[{rows}, {cols}] <- %{tile}[{rows}, {cols}]"
                    ),
                    3 => writeln!(text, "load %{tile}[{rows}, {cols}] <- %z[{rows}, {cols}]"),
                    _ => writeln!(text, "load %{tile}[{rows}, {cols}] <- %x[{rows}, {cols}]"),
                }
                .unwrap();
            }
        }
    }
    text.push_str(&"}\n".repeat(loops.len()));
    text.push_str("  }\n}\n");
    text
}

#[test]
fn on_random_programs() {
    let compared = (0..3000)
        .filter(|&seed| compare("random", &program(seed)))
        .count();
    assert!(compared > 2000, "only {compared} programs were compared");
}
