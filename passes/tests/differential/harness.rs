//! What differential tests share: random programs, a pass over them, and whether they still compute
//! what they did.
#![allow(dead_code, unreachable_pub, clippy::expect_used, clippy::panic)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use bir_dialect::bir::program::new_ir;
use bir_dialect::bir::verify::{Level, VerifyOptions, verify};
use bir_dialect::ir::Ir;
use bir_dialect::text::diag::Diagnostics;
use bir_dialect::text::{ParseOptions, PrintOptions, parse, print};
use bir_passes::instrument::{Flow, Instrument, Log, PassEvent, PassReport};
use bir_passes::pass::{Changed, Limits};
use bir_passes::{Manager, Pass, Pipeline};
use bir_sim::Options;
use bir_sim::generate::Config;
use bir_sim::validate::Baseline;

/// Programs a campaign makes: as many as `BIR_FUZZ` says, or `default`; from `BIR_FUZZ_FROM` on.
pub fn programs(default: u64) -> Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let from = number("BIR_FUZZ_FROM").unwrap_or(0);
    from..from + number("BIR_FUZZ").unwrap_or(default)
}

/// Programs of a size at which many fit in a test.
pub fn config(seed: u64) -> Config {
    Config {
        seed,
        instructions: 60 + (seed % 7) as usize * 20,
        max_elements: 32,
        ..Config::default()
    }
}

pub fn text(ir: &Ir) -> String {
    print(ir, PrintOptions::default())
}

/// Reads a file; it must be good.
pub fn read(text: &str) -> Ir {
    let mut ir = new_ir();
    let mut diags = Diagnostics::new();
    let options = ParseOptions::default();
    parse(text, 0..text.len(), &mut ir, options, &mut diags);
    let found: Vec<&str> = diags.iter().map(|one| one.message.as_str()).collect();
    assert!(!diags.has_errors(), "{found:#?}\n{text}");
    ir
}

/// Verifies at the level of definedness, placement and semaphores.
pub fn verified(ir: &Ir, what: &str) {
    let mut diags = Diagnostics::new();
    let options = VerifyOptions {
        level: Level::Full,
        ..VerifyOptions::default()
    };
    verify(ir, options, &mut diags);
    let found: Vec<&str> = diags.iter().map(|one| one.message.as_str()).collect();
    assert!(!diags.has_errors(), "{what}\n{}\n{found:#?}", text(ir));
}

/// What a program computes.
pub fn baseline(ir: &Ir, seed: u64, what: &str) -> Baseline {
    Baseline::new(ir, &[seed], Options::default())
        .unwrap_or_else(|fault| panic!("{what}\n{}\n{fault}", text(ir)))
}

/// Counters by pass and name.
pub type Counters = BTreeMap<String, u64>;

/// What a run of passes said.
pub struct Ran {
    pub changed: bool,
    pub counters: Counters,
    pub errors: Vec<String>,
}

/// Runs passes one after the other; their checkers look at what each one did.
pub fn run(passes: Vec<Box<dyn Pass>>, ir: &mut Ir) -> Ran {
    #[derive(Default)]
    struct Seen {
        changed: bool,
        counters: Counters,
    }
    struct Watch(Rc<RefCell<Seen>>);
    impl Instrument for Watch {
        fn after_pass(
            &mut self,
            event: &PassEvent<'_>,
            _ir: &Ir,
            report: &PassReport,
            _log: &mut dyn Log,
            _diags: &mut Diagnostics,
        ) -> Flow {
            let mut seen = self.0.borrow_mut();
            seen.changed |= report.changed == Changed::Yes;
            let declared = event.pass.statistics().iter();
            for (statistic, &count) in declared.zip(&report.counters) {
                let name = format!("{}: {}", event.pass.name(), statistic.name);
                *seen.counters.entry(name).or_default() += count;
            }
            Flow::Continue
        }
    }
    let seen = Rc::new(RefCell::new(Seen::default()));
    let mut pipeline = Pipeline::default();
    passes.into_iter().for_each(|pass| pipeline.push(pass));
    let mut manager = Manager::new(Limits {
        expensive_checks: true,
        ..Limits::default()
    });
    manager.watch(Watch(seen.clone()));
    let mut diags = Diagnostics::new();
    manager.run(&pipeline, ir, &mut String::new(), &mut diags);
    let errors = diags
        .iter()
        .filter(|one| one.severity == bir_dialect::text::diag::Severity::Error)
        .map(|one| one.message.clone())
        .collect();
    let seen = std::mem::take(&mut *seen.borrow_mut());
    Ran {
        changed: seen.changed,
        counters: seen.counters,
        errors,
    }
}

/// Runs a pass over a program and asks whether it computes what it did, verifies, says whether it
/// changed, and, for one that promises it, changes nothing the second time.
pub fn check<P: Pass + Clone + 'static>(
    pass: &P,
    ir: &mut Ir,
    seed: u64,
    again: Again,
    counters: &mut Counters,
) {
    let what = format!("seed {seed}, {}", pass.name());
    verified(ir, &what);
    let expected = baseline(ir, seed, &what);
    let before = text(ir);
    let ran = run(vec![Box::new(pass.clone())], ir);
    assert!(ran.errors.is_empty(), "{what}\n{before}\n{:#?}", ran.errors);
    let after = text(ir);
    verified(ir, &format!("{what}\n{before}"));
    assert_eq!(ran.changed, before != after, "{what}\n{before}\n{after}");
    if let Err(difference) = expected.check(ir) {
        panic!("{what}\n{before}\n{after}\n{difference}");
    }
    for (name, count) in ran.counters {
        *counters.entry(name).or_default() += count;
    }
    if again == Again::ChangesNothing {
        let ran = run(vec![Box::new(pass.clone())], ir);
        assert!(!ran.changed, "{what}\n{after}\n{}", text(ir));
    }
}

/// What a pass owes when it runs for the second time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// Nothing is left to do.
    ChangesNothing,
    /// Another good program.
    MayChange,
}

/// All counters must have counted something.
pub fn all_counted(counters: &Counters) {
    let silent: Vec<&String> = counters
        .iter()
        .filter(|&(_, &count)| count == 0)
        .map(|(name, _)| name)
        .collect();
    assert!(silent.is_empty(), "never counted: {silent:?}");
}
