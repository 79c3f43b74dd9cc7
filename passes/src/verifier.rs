//! `verifier`: the verifier as a pass.

use bir_dialect::bir::verify::{Level, VerifyOptions, verify};
use bir_dialect::ir::{Ir, Op};
use bir_dialect::text::diag::Diagnostics;

use crate::options::OptionValue;
use crate::pass::{Anchor, Changed, Pass, PassContext};
use crate::pass_options;

impl OptionValue for Level {
    const KIND: &'static str = "off|default|full";

    fn parse(text: &str) -> Result<Level, String> {
        Level::from_name(text)
            .ok_or_else(|| format!("expected `off`, `default` or `full`, found `{text}`"))
    }

    fn print(&self) -> String {
        self.name().to_owned()
    }
}

pass_options! {
    /// Verifies the whole program at this point of the pipeline.
    ///
    /// Every finding is reported; an error ends the run. `--verify-each` does the same after every
    /// pass.
    pub struct Verifier {
        /// How much is verified
        level: Level = Level::Default,
        /// Let ops of unknown dialects pass
        allow_unregistered: bool = false,
    }
}

impl Pass for Verifier {
    fn name(&self) -> &'static str {
        "verifier"
    }

    fn anchor(&self) -> Anchor {
        Anchor::Program
    }

    fn run(&self, ir: &mut Ir, on: &[Op], cx: &mut PassContext<'_>) -> Changed {
        cx.matched(on.len() as u64);
        let mut found = Diagnostics::new();
        let options = VerifyOptions {
            level: self.level,
            allow_unregistered: self.allow_unregistered,
        };
        verify(ir, options, &mut found);
        for diagnostic in found.iter() {
            cx.report(diagnostic.clone());
        }
        Changed::No
    }
}
