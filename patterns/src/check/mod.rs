//! From what was written to what the engine has: every static error of the language.
//!
//! * this file – sets, imports, options, settings of rules;
//! * `pattern` – one pattern against the op table; `term` – `rewrite` rules as patterns;
//! * `overlap` – rules that stand in each other's way.
//!
//! All errors of a file are found in one run; a rule with an error is left out, the others are still
//! compared with one another.

mod overlap;
mod pattern;
mod term;

use bir_dialect::text::diag::{Diagnostic, Diagnostics, Place, did_you_mean};

use crate::rule::{Contract, Driver, Rule, RuleSet, SetOption};
use crate::text::ast::{File, Item, ItemKind, Name, Setting};
use crate::text::item_text;
use pattern::Checker;
pub(crate) use pattern::domain;

/// The largest `benefit`.
const MAX_BENEFIT: u32 = 1000;
/// The largest `ulp`.
const MAX_ULP: u64 = 1 << 20;

/// Checks a file, given the sets that are known already, and returns its sets.
pub(crate) fn check(
    file: &File,
    number: usize,
    known: &[RuleSet],
    diags: &mut Diagnostics,
) -> Vec<RuleSet> {
    let mut errors = Vec::new();
    let mut sets: Vec<RuleSet> = Vec::new();
    let mut names: Vec<Name> = Vec::new();
    for item in &file.items {
        match &item.kind {
            ItemKind::Set { name, driver } => {
                set(
                    item,
                    name,
                    driver.as_ref(),
                    known,
                    &mut sets,
                    &mut names,
                    &mut errors,
                );
            }
            ItemKind::Import(name) => import(item, name, known, &mut sets, &mut errors),
            ItemKind::Option { name, default } => {
                let Some(set) = current(item, &mut sets, &mut errors) else {
                    continue;
                };
                if set.options.iter().any(|option| option.name == name.text) {
                    let text = format!("set `{}` has an option `{}` already", set.name, name.text);
                    errors.push(Diagnostic::error(Place::Span(name.span.clone()), text));
                    continue;
                }
                set.options.push(SetOption {
                    name: name.text.clone(),
                    default: *default,
                    doc: item.docs.join("\n"),
                });
            }
            ItemKind::Pattern(_) | ItemKind::Rule(_) => {
                let Some(set) = current(item, &mut sets, &mut errors) else {
                    continue;
                };
                if let Some(rule) = rule(item, number, set, &mut errors) {
                    set.rules.push(rule);
                }
            }
        }
    }
    for set in &sets {
        overlap::check(set, number, &mut errors);
    }
    for error in errors {
        diags.push(error);
    }
    sets
}

fn current<'s>(
    item: &Item,
    sets: &'s mut [RuleSet],
    errors: &mut Vec<Diagnostic>,
) -> Option<&'s mut RuleSet> {
    let last = sets.last_mut();
    if last.is_none() {
        let first = item.span.start..item.span.start + 1;
        let text = "there is no set yet for this to belong to";
        errors.push(
            Diagnostic::error(Place::Span(first), text).help("begin the file with `set name;`"),
        );
    }
    last
}

fn set(
    item: &Item,
    name: &Name,
    driver: Option<&Name>,
    known: &[RuleSet],
    sets: &mut Vec<RuleSet>,
    names: &mut Vec<Name>,
    errors: &mut Vec<Diagnostic>,
) {
    let place = Place::Span(name.span.clone());
    if let Some(first) = names.iter().find(|first| first.text == name.text) {
        let text = format!("set `{}` is defined twice", name.text);
        let error = Diagnostic::error(place, text);
        errors.push(error.related(Place::Span(first.span.clone()), "first here"));
    } else if known.iter().any(|set| set.name == name.text) {
        let text = format!("set `{}` is defined in another file already", name.text);
        errors.push(Diagnostic::error(place, text));
    }
    let driver = match driver {
        None => Driver::default(),
        Some(word) => match Driver::from_name(&word.text) {
            Some(driver) => driver,
            None => {
                let text = format!(
                    "unknown driver `{}`; expected `single_shot` or `greedy`",
                    word.text
                );
                let help = did_you_mean(&word.text, ["single_shot", "greedy"]);
                let place = Place::Span(word.span.clone());
                errors.push(Diagnostic::error(place, text).maybe_help(help));
                Driver::default()
            }
        },
    };
    names.push(name.clone());
    sets.push(RuleSet {
        name: name.text.clone(),
        doc: item.docs.join("\n"),
        driver,
        options: Vec::new(),
        rules: Vec::new(),
    });
}

fn import(
    item: &Item,
    name: &Name,
    known: &[RuleSet],
    sets: &mut [RuleSet],
    errors: &mut Vec<Diagnostic>,
) {
    let place = Place::Span(name.span.clone());
    let (here, before) = match sets.split_last_mut() {
        Some((here, before)) => (here, before),
        None => {
            current(item, sets, errors);
            return;
        }
    };
    let found = before.iter().chain(known).find(|set| set.name == name.text);
    let Some(found) = found else {
        let names = before.iter().chain(known).map(|set| set.name.as_str());
        let text = format!(
            "unknown set `{}`; a set is imported after it is defined",
            name.text
        );
        errors.push(Diagnostic::error(place, text).maybe_help(did_you_mean(&name.text, names)));
        return;
    };
    for rule in &found.rules {
        if here.rules.iter().any(|one| one.name == rule.name) {
            let text = format!(
                "set `{}` has a rule `{}`, and so has the imported set `{}`",
                here.name, rule.name, found.name
            );
            errors.push(Diagnostic::error(place.clone(), text));
            continue;
        }
        let mut rule = rule.clone();
        rule.option = rule.option.and_then(|option| {
            let option = found.options.get(option)?;
            let at = here.options.iter().position(|one| one.name == option.name);
            Some(at.unwrap_or_else(|| {
                here.options.push(option.clone());
                here.options.len() - 1
            }))
        });
        here.rules.push(rule);
    }
}

fn rule(item: &Item, file: usize, set: &RuleSet, errors: &mut Vec<Diagnostic>) -> Option<Rule> {
    let (name, settings, law) = match &item.kind {
        ItemKind::Pattern(pattern) => (&pattern.name, &pattern.settings, None),
        ItemKind::Rule(rule) => (&rule.name, &rule.settings, rule.law.clone()),
        _ => return None,
    };
    let before = errors.len();
    if let Some(first) = set.rules.iter().find(|rule| rule.name == name.text) {
        let text = format!(
            "rule `{}` is defined twice in set `{}`",
            name.text, set.name
        );
        let mut error = Diagnostic::error(Place::Span(name.span.clone()), text);
        if first.file == file {
            error = error.related(Place::Span(first.span.clone()), "first here");
        }
        errors.push(error);
    }
    let mut rule = Rule {
        name: name.text.clone(),
        law,
        doc: item.docs.join("\n"),
        text: item_text(item),
        span: name.span.clone(),
        file,
        benefit: 1,
        contract: Contract::default(),
        option: None,
        forms: Vec::new(),
    };
    for setting in settings {
        if let Err(error) = apply(setting, set, &mut rule) {
            errors.push(*error);
        }
    }
    match &item.kind {
        ItemKind::Pattern(pattern) => {
            rule.forms.extend(Checker::new(errors, '%').form(pattern));
        }
        ItemKind::Rule(terms) => match term::patterns(terms) {
            Ok(patterns) => {
                for pattern in &patterns {
                    let mut mine = Vec::new();
                    let form = Checker::new(&mut mine, '?').form(pattern);
                    rule.forms.extend(form);
                    for error in mine {
                        let known = errors
                            .iter()
                            .any(|one| one.place == error.place && one.message == error.message);
                        if !known {
                            errors.push(error);
                        }
                    }
                }
            }
            Err(error) => errors.push(*error),
        },
        _ => {}
    }
    (errors.len() == before && !rule.forms.is_empty()).then_some(rule)
}

fn apply(setting: &Setting, set: &RuleSet, rule: &mut Rule) -> Result<(), Box<Diagnostic>> {
    let name = &setting.name;
    let at = |name: &Name| Place::Span(name.span.clone());
    let number = |max: u64| -> Result<u64, Box<Diagnostic>> {
        let value = setting.value.as_ref();
        let number = value.and_then(|value| value.text.parse().ok());
        match number {
            Some(number) if (1..=max).contains(&number) => Ok(number),
            _ => {
                let found = value.map_or("nothing".to_owned(), |one| format!("`{}`", one.text));
                let text = format!("`{}` is a number from 1 to {max}, found {found}", name.text);
                Err(Box::new(Diagnostic::error(at(value.unwrap_or(name)), text)))
            }
        }
    };
    match name.text.as_str() {
        "benefit" => rule.benefit = number(u64::from(MAX_BENEFIT))? as u32,
        "ulp" => rule.contract.ulp = number(MAX_ULP)?,
        "exact" => rule.contract.ulp = 0,
        "option" => {
            let Some(value) = &setting.value else {
                let text = "`option` is followed by the name of an option of the set";
                return Err(Box::new(Diagnostic::error(at(name), text)));
            };
            let known = set
                .options
                .iter()
                .position(|option| option.name == value.text);
            let Some(known) = known else {
                let names = set.options.iter().map(|option| option.name.as_str());
                let text = format!("set `{}` has no option `{}`", set.name, value.text);
                let help = did_you_mean(&value.text, names)
                    .or(Some(format!("declare it: `option {} = true;`", value.text)));
                return Err(Box::new(
                    Diagnostic::error(at(value), text).maybe_help(help),
                ));
            };
            rule.option = Some(known);
        }
        other => {
            if !rule.contract.needs.set(other) {
                let known = ["benefit", "exact", "ulp", "option", "nsz", "nnan", "ninf"];
                let text = format!("unknown setting `{other}`");
                return Err(Box::new(
                    Diagnostic::error(at(name), text).maybe_help(did_you_mean(other, known)),
                ));
            }
        }
    }
    Ok(())
}
