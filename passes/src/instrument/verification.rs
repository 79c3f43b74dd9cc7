//! `--verify-each`: the module after every pass.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use bir_dialect::bir::verify::{Level, VerifyOptions, verify};
use bir_dialect::ir::Ir;
use bir_dialect::text::diag::{Diagnostic, Diagnostics, Place};
use bir_dialect::text::{PrintOptions, print};

use super::{Flow, Instrument, Log, PassEvent, PassReport, Verdict};
use crate::pass::Changed;

/// Verifies after every pass that changed something. At [`Level::Full`] it also holds passes to
/// their word that nothing changed.
pub struct Verification {
    options: VerifyOptions,
    before: u64,
}

impl Verification {
    /// Verifies as `options` say.
    pub fn new(options: VerifyOptions) -> Verification {
        Verification { options, before: 0 }
    }
}

/// A hash of everything that prints.
fn fingerprint(ir: &Ir) -> u64 {
    let mut hasher = DefaultHasher::new();
    for generic in [false, true] {
        let options = PrintOptions {
            generic,
            ..PrintOptions::default()
        };
        print(ir, options).hash(&mut hasher);
    }
    hasher.finish()
}

impl Instrument for Verification {
    fn before_pass(&mut self, _event: &PassEvent<'_>, ir: &Ir, _log: &mut dyn Log) -> Verdict {
        if self.options.level == Level::Full {
            self.before = fingerprint(ir);
        }
        Verdict::Run
    }

    fn after_pass(
        &mut self,
        event: &PassEvent<'_>,
        ir: &Ir,
        report: &PassReport,
        _log: &mut dyn Log,
        diags: &mut Diagnostics,
    ) -> Flow {
        let name = event.pass.name();
        if report.changed == Changed::No {
            if self.options.level == Level::Full && fingerprint(ir) != self.before {
                let message = format!("pass `{name}` reported no change but changed the module");
                diags.push(Diagnostic::error(Place::None, message));
            }
            return Flow::Continue;
        }
        let mut found = Diagnostics::new();
        verify(ir, self.options, &mut found);
        for diagnostic in found.iter() {
            diags.push(diagnostic.clone().note(format!("after pass `{name}`")));
        }
        Flow::Continue
    }
}
