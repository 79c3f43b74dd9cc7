//! Each pass as a flag, made from the table of passes.

use bir_passes::Registry;
use bir_passes::pass::summary;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

/// A pass given as a flag.
pub(super) struct PassFlag {
    /// Name, with underscores.
    pub(super) name: &'static str,
    /// What stood behind `=`: options, without their braces.
    pub(super) options: String,
    at: usize,
}

/// Adds a flag per pass.
pub(super) fn add(command: Command) -> Command {
    Registry::new().all().fold(command, |command, pass| {
        let mut help = format!("{}\n\n", summary(pass.as_ref()));
        for (number, def) in pass.option_defs().iter().enumerate() {
            help.push_str(&format!(
                "  {}={}: {} [default: {}]\n",
                def.printed(),
                def.kind,
                def.doc.trim(),
                bir_passes::pipeline::value_text(&pass.option(number))
            ));
        }
        let mut arg = Arg::new(pass.name())
            .long(pass.name().replace('_', "-"))
            .help(summary(pass.as_ref()))
            .long_help(help.trim_end().to_owned())
            .value_name("OPTIONS")
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("")
            .action(ArgAction::Append)
            .help_heading("Passes, run in the order given");
        if pass.name().contains('_') {
            arg = arg.alias(pass.name());
        }
        command.arg(arg)
    })
}

/// The passes given as flags, in the order of the command line.
pub(super) fn given(matches: &ArgMatches) -> Vec<PassFlag> {
    let mut flags = Vec::new();
    for name in Registry::new().names() {
        if matches.value_source(name) != Some(ValueSource::CommandLine) {
            continue;
        }
        let values = matches.get_many::<String>(name).into_iter().flatten();
        let places = matches.indices_of(name).into_iter().flatten();
        flags.extend(values.zip(places).map(|(options, at)| PassFlag {
            name,
            options: options.clone(),
            at,
        }));
    }
    flags.sort_by_key(|flag| flag.at);
    flags
}
