//! `apply_patterns`: a set of rewrite rules over every function.

use bir_dialect::ir::{Ir, Op};
use bir_dialect::text::diag::{Diagnostic, Place, did_you_mean};
use bir_patterns::{Driver, Flags, Settings, apply};

use crate::options::OptionValue;
use crate::pass::{Anchor, Changed, Pass, PassContext, Statistic};
use crate::pass_options;

/// Which driver applies a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DriverChoice {
    /// The one the set is written for.
    OfSet,
    /// This one.
    Is(Driver),
}

impl OptionValue for DriverChoice {
    const KIND: &'static str = "set|single_shot|greedy";

    fn parse(text: &str) -> Result<DriverChoice, String> {
        match Driver::from_name(text) {
            Some(driver) => Ok(DriverChoice::Is(driver)),
            None if text == "set" => Ok(DriverChoice::OfSet),
            None => Err(format!(
                "expected `set`, `single_shot` or `greedy`, found `{text}`"
            )),
        }
    }

    fn print(&self) -> String {
        match self {
            DriverChoice::OfSet => "set".to_owned(),
            DriverChoice::Is(driver) => driver.name().to_owned(),
        }
    }
}

pass_options! {
    /// Applies a set of rewrite rules.
    ///
    /// Sets come with the tool or from `--patterns FILE`; `bir-pattern list` shows them. The driver is
    /// the one the set is written for: `single_shot` tries each rule once, in order, `greedy` goes on
    /// until no rule fits. `--remarks=passed` tells where rules fired, `--remarks=missed` where they did
    /// not and the first thing that was in the way.
    pub struct ApplyPatterns {
        /// name of the set
        set: String = String::new(),
        /// driver, instead of that of the set
        driver: DriverChoice = DriverChoice::OfSet,
        /// what does not matter: `nsz` the sign of zeros, `nnan` NaNs, `ninf` infinities
        allow: Vec<String> = Vec::new(),
        /// options of the set to switch on
        enable: Vec<String> = Vec::new(),
        /// options of the set to switch off
        disable: Vec<String> = Vec::new(),
        /// rewrites of what rewrites made, one after the other, before the greedy driver gives up
        max_chain: u64 = 64,
    }
}

const APPLIED: Statistic = Statistic {
    name: "rules-applied",
    doc: "rewrites made",
};
const MATCHED: Statistic = Statistic {
    name: "rules-matched",
    doc: "places where all of a rule held",
};
const TRIED: Statistic = Statistic {
    name: "rules-tried",
    doc: "places where a form of a rule was tried",
};
const VETOED: Statistic = Statistic {
    name: "rules-vetoed",
    doc: "places where the instructions fit and a condition did not hold",
};

impl ApplyPatterns {
    /// What a run needs, or what is wrong with the options.
    fn settings(&self, cx: &PassContext<'_>) -> Result<(usize, Settings), Box<Diagnostic>> {
        let library = cx.rules().library();
        let wrong = |message: String| Box::new(Diagnostic::error(Place::None, message));
        let names = || library.sets.iter().map(|set| set.name.as_str());
        let number = library.sets.iter().position(|set| set.name == self.set);
        let Some(number) = number else {
            let mut error = match self.set.as_str() {
                "" => wrong("apply_patterns: option `set` names no set".to_owned()),
                set => wrong(format!("apply_patterns: unknown set `{set}`")),
            };
            let known: Vec<String> = names().map(|name| format!("`{name}`")).collect();
            let known = format!(
                "sets are {}; `--patterns FILE` loads more",
                known.join(", ")
            );
            error.help = did_you_mean(&self.set, names()).or(Some(known));
            return Err(error);
        };
        let set = &library.sets[number];
        let mut allowed = Flags::default();
        for flag in &self.allow {
            if !allowed.set(flag) {
                let error = wrong(format!(
                    "apply_patterns: option `allow` takes `nsz`, `nnan` and `ninf`, found `{flag}`"
                ));
                return Err(error);
            }
        }
        let mut options = set.defaults();
        let switches = [(&self.enable, true), (&self.disable, false)];
        for (names, on) in switches {
            for name in names {
                let found = set.options.iter().position(|option| option.name == *name);
                let Some(found) = found else {
                    let mut error = wrong(format!(
                        "apply_patterns: set `{}` has no option `{name}`",
                        set.name
                    ));
                    let known = set.options.iter().map(|option| option.name.as_str());
                    error.help = did_you_mean(name, known);
                    return Err(error);
                };
                options[found] = on;
            }
        }
        let settings = Settings {
            driver: match self.driver {
                DriverChoice::OfSet => None,
                DriverChoice::Is(driver) => Some(driver),
            },
            allowed,
            options,
            remarks: cx.rules().remarks,
            max_chain: u32::try_from(self.max_chain).unwrap_or(u32::MAX).max(1),
            max_instructions: cx.limits().max_instructions,
            expensive_checks: cx.limits().expensive_checks,
        };
        Ok((number, settings))
    }
}

impl Pass for ApplyPatterns {
    fn name(&self) -> &'static str {
        "apply_patterns"
    }

    fn anchor(&self) -> Anchor {
        Anchor::Func
    }

    fn statistics(&self) -> &'static [Statistic] {
        &[APPLIED, MATCHED, TRIED, VETOED]
    }

    fn run(&self, ir: &mut Ir, on: &[Op], cx: &mut PassContext<'_>) -> Changed {
        let (number, settings) = match self.settings(cx) {
            Ok(settings) => settings,
            Err(error) => {
                cx.report(*error);
                return Changed::No;
            }
        };
        let rules = cx.rules().clone();
        let set = &rules.library().sets[number];
        let mut applied = 0;
        for &func in on {
            let report = apply(ir, func, set, &settings, &mut |what| cx.may_rewrite(what));
            applied += report.applied;
            for counter in &report.counters {
                cx.count(&APPLIED, counter.applied);
                cx.count(&MATCHED, counter.matched);
                cx.count(&TRIED, counter.tried);
                cx.count(&VETOED, counter.vetoes.values().sum());
                cx.matched(counter.tried);
            }
            for remark in report.remarks {
                cx.report(remark);
            }
            if let Some(error) = report.error {
                cx.report(error);
                break;
            }
        }
        Changed::from_bool(applied > 0)
    }
}
