//! The token game against every schedule there is, on small random programs.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

use bir_dialect::analysis::sync::{Outcome, play};
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::space::Target;
use bir_dialect::bir::verify::Level;
use bir_dialect::ir::{Ir, Op};

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }
}

const ENGINES: [&str; 3] = ["act", "dve", "pe"];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Change {
    Add(i64),
    Set(i64),
}

/// One instruction that is executed once: its place among the statements, and what it does.
#[derive(Clone, Debug)]
struct Step {
    statement: usize,
    engine: usize,
    wait: Option<(usize, i64)>,
    signal: Option<(usize, Change)>,
    is_barrier: bool,
}

/// Text of a program of two semaphores and three engines, and what it executes, loops unrolled.
fn program(random: &mut Random, only_rises: bool) -> (String, Vec<Step>) {
    let mut text = String::from("bir.module @m {\n  bir.func @main {\n");
    let mut steps: Vec<Step> = Vec::new();
    let mut loops: Option<(usize, u64)> = None;
    let count = 3 + random.below(5) as usize;
    for statement in 0..count {
        if loops.is_none() && random.below(5) == 0 {
            let trips = random.below(4);
            writeln!(text, "loop %i{statement} = 0 to {trips} {{").unwrap();
            loops = Some((steps.len(), trips));
        }
        let engine = random.below(3) as usize;
        if random.below(8) == 0 {
            text.push_str("all_engine_barrier\n");
            steps.push(Step {
                statement,
                engine,
                wait: None,
                signal: None,
                is_barrier: true,
            });
        } else {
            let wait = (random.below(2) == 0)
                .then(|| (random.below(2) as usize, 1 + random.below(4) as i64));
            let kind = if only_rises { 0 } else { random.below(4) };
            let by = 1 + random.below(2) as i64;
            let signal = (random.below(4) != 0 || wait.is_none()).then(|| {
                let change = match kind {
                    0 | 1 => Change::Add(by),
                    2 => Change::Add(-by),
                    _ => Change::Set(by - 1),
                };
                (random.below(2) as usize, change)
            });
            let mut attrs = vec![format!("engine = {}", ENGINES[engine])];
            attrs.extend(wait.map(|(id, value)| format!("wait = [{id} >= {value}]")));
            attrs.extend(signal.map(|(id, change)| match change {
                Change::Add(by) if by < 0 => format!("signal = [{id} -= {}]", -by),
                Change::Add(by) => format!("signal = [{id} += {by}]"),
                Change::Set(to) => format!("signal = [{id} := {to}]"),
            }));
            writeln!(text, "event_semaphore {{{}}}", attrs.join(", ")).unwrap();
            steps.push(Step {
                statement,
                engine,
                wait,
                signal,
                is_barrier: false,
            });
        }
        if let Some((from, trips)) = loops
            && random.below(3) == 0
        {
            text.push_str("}\n");
            let body: Vec<Step> = steps.drain(from..).collect();
            (0..trips).for_each(|_| steps.extend(body.iter().cloned()));
            loops = None;
        }
    }
    if let Some((from, trips)) = loops {
        text.push_str("}\n");
        let body: Vec<Step> = steps.drain(from..).collect();
        (0..trips).for_each(|_| steps.extend(body.iter().cloned()));
    }
    text.push_str("  }\n}\n");
    (text, steps)
}

/// Statements some schedule executes completely, and whether some schedule executes everything.
fn schedules(steps: &[Step]) -> (BTreeMap<usize, usize>, bool) {
    let streams: Vec<Vec<&Step>> = (0..3)
        .map(|engine| {
            steps
                .iter()
                .filter(|step| step.is_barrier || step.engine == engine)
                .collect()
        })
        .collect();
    let mut most: BTreeMap<usize, usize> = BTreeMap::new();
    let mut seen = HashSet::new();
    let mut todo = vec![([0usize; 3], [0i64; 2])];
    let mut completes = false;
    while let Some((at, values)) = todo.pop() {
        if !seen.insert((at, values)) {
            continue;
        }
        completes |= (0..3).all(|s| at[s] == streams[s].len());
        for s in 0..3 {
            for step in &streams[s][..at[s]] {
                let executed = streams[s][..at[s]]
                    .iter()
                    .filter(|other| other.statement == step.statement)
                    .count();
                let most = most.entry(step.statement).or_default();
                *most = (*most).max(executed);
            }
        }
        let next: Vec<Option<&&Step>> = (0..3).map(|s| streams[s].get(at[s])).collect();
        if next
            .iter()
            .all(|step| step.is_some_and(|step| step.is_barrier))
        {
            todo.push((at.map(|at| at + 1), values));
            continue;
        }
        for s in 0..3 {
            let Some(step) = next[s].filter(|step| !step.is_barrier) else {
                continue;
            };
            if step.wait.is_some_and(|(id, value)| values[id] < value) {
                continue;
            }
            let (mut at, mut values) = (at, values);
            at[s] += 1;
            match step.signal {
                Some((id, Change::Add(by))) => values[id] += by,
                Some((id, Change::Set(to))) => values[id] = to,
                None => {}
            }
            todo.push((at, values));
        }
    }
    (most, completes)
}

fn read(text: &str) -> Ir {
    bir_dialect::read(text, Level::Off).unwrap()
}

/// Functions, and statements but loops in order.
fn operations(ir: &Ir) -> (Op, Vec<Op>) {
    let of = |code| move |op: &Op| OpCode::of(ir, *op) == Some(code);
    let function = ir.walk().ops().find(of(OpCode::Func)).unwrap();
    let statements = ir
        .walk()
        .ops()
        .filter(|op| of(OpCode::EventSemaphore)(op) || of(OpCode::AllEngineBarrier)(op))
        .collect();
    (function, statements)
}

#[test]
fn unmet_waits_are_those_no_schedule_meets() {
    let (mut met, mut unmet, mut unknown) = (0, 0, 0);
    let scale = std::env::var("BIR_FUZZ").ok().and_then(|s| s.parse().ok());
    for seed in 0..2000 * scale.unwrap_or(1u64) {
        let mut random = Random(seed);
        let only_rises = seed % 2 == 0;
        let (text, steps) = program(&mut random, only_rises);
        let ir = read(&text);
        let (function, statements) = operations(&ir);
        let (most, completes) = schedules(&steps);
        match play(&ir, function, Target::Trn2) {
            Outcome::Met => {
                met += 1;
                assert!(completes, "seed {seed}:\n{text}");
            }
            Outcome::Unmet(list) => {
                unmet += 1;
                assert!(!completes && !list.is_empty(), "seed {seed}:\n{text}");
                for found in list {
                    let statement = statements.iter().position(|&op| op == found.op).unwrap();
                    let times = steps
                        .iter()
                        .filter(|step| step.statement == statement)
                        .count();
                    let executed = most.get(&statement).copied().unwrap_or(0);
                    assert!(executed < times, "seed {seed}, {statement}:\n{text}");
                }
            }
            Outcome::Unknown => {
                unknown += 1;
                assert!(!only_rises, "seed {seed}:\n{text}");
            }
            Outcome::Overflow(found) => panic!("seed {seed}: {found:?}\n{text}"),
        }
    }
    // None of the three is rare.
    assert!(
        met > 200 && unmet > 200 && unknown > 50,
        "{met} {unmet} {unknown}"
    );
}

/// A play as long as a large kernel ends, whatever its order.
#[test]
fn a_long_play_ends() {
    let count = 200_000;
    let mut text = String::from("bir.module @m {\n  bir.func @main {\n");
    text.push_str("event_semaphore {engine = act, wait = [1 >= 1]}\n");
    for i in 0..count {
        writeln!(text, "event_semaphore {{engine = act, wait = [1 >= {i}]}}").unwrap();
        text.push_str("event_semaphore {engine = dve, signal = [1 += 1]}\n");
    }
    let end = format!(
        "event_semaphore {{engine = pe, wait = [1 >= {}]}}\n",
        count + 1
    );
    let good = format!("{text}  }}\n}}\n");
    let ir = read(&good);
    let (function, _) = operations(&ir);
    assert_eq!(play(&ir, function, Target::Trn2), Outcome::Met);
    let bad = format!("{text}{end}  }}\n}}\n");
    let ir = read(&bad);
    let (function, statements) = operations(&ir);
    let Outcome::Unmet(list) = play(&ir, function, Target::Trn2) else {
        panic!("met")
    };
    assert_eq!(
        (list[0].op, list[0].value),
        (*statements.last().unwrap(), count)
    );
    // Loops nobody finishes counting are not played.
    let ir = read(
        "bir.module @m {\n bir.func @main {\n loop %i = 0 to 1000000000 {\n event_semaphore {engine = act, signal = [1 += 1]}\n }\n }\n}\n",
    );
    let (function, _) = operations(&ir);
    assert_eq!(play(&ir, function, Target::Trn2), Outcome::Unknown);
}
