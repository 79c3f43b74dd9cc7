//! What `--expensive-checks` asks of every rewrite: the rewriter's contract, judged from outside.
//!
//! * a rule that did not fire has changed nothing;
//! * one that fired has changed something, and its program verifies as far as the one before did;
//! * what is known of memory is what the program says.
//!
//! Each costs a walk over the module, so a run costs its rewrites times the size of the program.

use bir_dialect::analysis::deps::Memory;
use bir_dialect::bir::verify::{Level, VerifyOptions, verify};
use bir_dialect::ir::{Ir, Op, Value};
use bir_dialect::text::diag::{Diagnostic, Diagnostics, Part, Place, Severity};
use bir_dialect::text::{PrintOptions, print};

use crate::estate::Estate;
use crate::flow::Flow;
use crate::rule::Rule;

/// The program as it was seen last.
pub(super) struct Checks {
    text: String,
    level: Level,
}

impl Checks {
    /// Of a program nothing has been done to yet.
    pub(super) fn new(ir: &Ir) -> Checks {
        // A program that says too little, or too much, to begin with is not blamed on rules.
        let levels = [Level::Full, Level::Default, Level::Instructions];
        let level = levels
            .into_iter()
            .find(|&level| broken(ir, level).is_none());
        Checks {
            text: text(ir),
            level: level.unwrap_or(Level::Off),
        }
    }

    /// After a rule that did not fire.
    pub(super) fn missed(&self, ir: &Ir, rule: &Rule, op: Op) -> Option<Diagnostic> {
        (text(ir) != self.text).then(|| {
            let what = "said it could not be carried out, and changed the program";
            failed(rule, op, what)
        })
    }

    /// After a rule that fired.
    pub(super) fn fired(
        &mut self,
        ir: &Ir,
        flow: &mut Flow,
        estate: &Estate,
        rule: &Rule,
        made: &[Op],
    ) -> Option<Diagnostic> {
        let place = made.first().copied().unwrap_or(flow.func());
        let now = text(ir);
        if now == self.text {
            let what = "said it was carried out, and changed nothing";
            return Some(failed(rule, place, what));
        }
        self.text = now;
        // What is to be handed on when the walk ends is handed on in a copy.
        let mut settled = ir.clone();
        estate
            .clone()
            .settle(&mut settled, &mut Flow::new(flow.func()));
        if let Some(message) = broken(&settled, self.level) {
            let what = "left a program that does not verify";
            return Some(failed(rule, place, what).note(message));
        }
        let func = flow.func();
        let memory = flow.known()?;
        let fresh = Memory::new(ir, func);
        let mut values: Vec<Value> = made
            .iter()
            .filter(|&&op| !ir.is_erased(op))
            .flat_map(|&op| ir.operands(op).iter().map(|operand| operand.value))
            .collect();
        values.sort_unstable();
        values.dedup();
        let same = ir.walk_op(func).all(|op| {
            ir.operand_ids(op).all(|operand| {
                values.binary_search(&ir.operand(operand).value).is_err()
                    || memory.last_writer(ir, op, operand) == fresh.last_writer(ir, op, operand)
                        && memory.readers_of(ir, op, operand) == fresh.readers_of(ir, op, operand)
            })
        });
        (!same).then(|| {
            let what = "changed what memory holds without telling the rewriter";
            failed(rule, place, what)
        })
    }
}

fn text(ir: &Ir) -> String {
    print(ir, PrintOptions::default())
}

/// The first thing that is wrong with a program.
fn broken(ir: &Ir, level: Level) -> Option<String> {
    let mut diags = Diagnostics::new();
    let options = VerifyOptions {
        level,
        ..VerifyOptions::default()
    };
    verify(ir, options, &mut diags);
    let mut errors = diags.iter().filter(|one| one.severity == Severity::Error);
    errors.next().map(|one| one.message.clone())
}

fn failed(rule: &Rule, op: Op, what: &str) -> Diagnostic {
    let message = format!("rule `{}` {what}", rule.name);
    Diagnostic::error(Place::Op(op, Part::Whole), message)
        .help("this is a fault of a registered rewrite or of the rewriter, not of the program")
}

#[cfg(test)]
mod tests {
    use bir_dialect::bir::ops::OpCode;
    use bir_dialect::ir::{Cursor, NewOp};

    use crate::driver::{Settings, apply};
    use crate::library::Library;
    use crate::natives::Native;
    use crate::rewriter::Rewriter;
    use crate::rule::{Action, Arg, Form};
    use crate::{matcher::Found, rule::RuleSet};

    use super::*;

    type Apply = fn(&mut Rewriter<'_>, &Form, &Found, &[Arg]) -> bool;

    fn kept(found: &Found) -> Option<Op> {
        found.ops.first().copied().flatten()
    }

    /// Says no, with a location of its own behind it.
    fn sly(rewriter: &mut Rewriter<'_>, _: &Form, found: &Found, _: &[Arg]) -> bool {
        if let Some(op) = kept(found) {
            let word = rewriter.ir.ctx.string("pool");
            rewriter.ir.set_attr(op, "engine", Some(word));
        }
        false
    }

    fn idle(_: &mut Rewriter<'_>, _: &Form, _: &Found, _: &[Arg]) -> bool {
        true
    }

    fn breaking(rewriter: &mut Rewriter<'_>, _: &Form, found: &Found, _: &[Arg]) -> bool {
        if let Some(op) = kept(found) {
            let word = rewriter.ir.ctx.string("pe");
            rewriter.set_attr(op, "engine", Some(word));
        }
        true
    }

    /// Adds a write nobody is told of.
    fn secret(rewriter: &mut Rewriter<'_>, _: &Form, found: &Found, _: &[Arg]) -> bool {
        let Some(op) = kept(found) else { return false };
        let operands = rewriter.ir.new_operands(op);
        let dict = rewriter.ir.dict(op);
        let name = rewriter.ir.name(op);
        let new = NewOp {
            operands: &operands,
            dict,
            ..NewOp::new(name)
        };
        let made = rewriter.ir.insert(Cursor::Before(op), new);
        rewriter.made.push(made);
        true
    }

    static NATIVES: [Native; 4] = [
        native("sly", sly),
        native("idle", idle),
        native("breaking", breaking),
        native("secret", secret),
    ];

    const fn native(name: &'static str, apply: Apply) -> Native {
        Native {
            name,
            params: &[],
            doc: "",
            writes: false,
            apply,
        }
    }

    /// What a run says of a rule whose rewrite is another one.
    fn said(native: &'static Native) -> Option<String> {
        let mut library = Library::empty();
        let rule = "set s single_shot;
            pattern r {
              match { keep tensor_copy %y <- _; keep tensor_scalar add _ <- %y, 1.0; }
              rewrite { call set_engine(%y, pool); }
            }";
        let found = library.add("s.pat", rule);
        assert!(!found.has_errors(), "{:?}", found.iter().next());
        let mut set: RuleSet = library.sets.remove(0);
        set.rules[0].forms[0].actions = vec![Action::Call(native, Vec::new())];
        let text = "bir.module @m {\n  bir.func @f {\n    %x = alloc sbuf<4x4xf32>\n    %y = alloc sbuf<4x4xf32>\n    %z = alloc sbuf<4x4xf32>\n    memset %x <- 1.0\n    tensor_copy %y <- %x\n    tensor_scalar add %z <- %y, 1.0\n  }\n}\n";
        let Ok(mut ir) = bir_dialect::read(text, Level::Default) else {
            return Some("no program".to_owned());
        };
        let func = ir
            .walk()
            .ops()
            .find(|&op| OpCode::of(&ir, op) == Some(OpCode::Func))?;
        let settings = Settings {
            expensive_checks: true,
            ..Settings::default()
        };
        let report = apply(&mut ir, func, &set, &settings, &mut |_| true);
        report.error.map(|error| error.message)
    }

    #[test]
    fn rewrites_that_break_the_contract_are_named() {
        for (native, what) in NATIVES.iter().zip([
            "said it could not be carried out, and changed the program",
            "said it was carried out, and changed nothing",
            "left a program that does not verify",
            "changed what memory holds without telling the rewriter",
        ]) {
            assert_eq!(said(native), Some(format!("rule `r` {what}")));
        }
        assert_eq!(said(&crate::natives::NATIVES[0]), None);
    }
}
