//! `--crash-reproducer`: the module before the pass that failed, with what is needed to run it again.
//!
//! The file is an ordinary `.bir`. Its first lines are comments: what happened, and one line
//! `// reproduce: FLAG` per flag, the pipeline from the failing pass on among them.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use bir_dialect::bir::files::print_elsewhere;
use bir_dialect::ir::Ir;
use bir_dialect::text::PrintOptions;
use bir_dialect::text::diag::{Diagnostics, Severity};

use super::{Instrument, Log, PassEvent, Verdict};

const MARK: &str = "// reproduce: ";

/// Writes a file for the first pass that fails.
pub struct Reproducer {
    folder: PathBuf,
    /// What file names begin with.
    stem: String,
    /// Flags of the run that must be given again, the pipeline aside.
    flags: Vec<String>,
    /// The module before the pass that runs.
    before: String,
    file: Option<usize>,
}

impl Reproducer {
    /// Files go to `folder`, which is made if it is not there, named after `stem` and the pass.
    pub fn new(folder: PathBuf, stem: String, flags: Vec<String>) -> Reproducer {
        Reproducer {
            folder,
            stem,
            flags,
            before: String::new(),
            file: None,
        }
    }
}

impl Instrument for Reproducer {
    fn begin_file(&mut self, number: Option<usize>) {
        self.file = number;
    }

    fn before_pass(&mut self, _event: &PassEvent<'_>, ir: &Ir, _log: &mut dyn Log) -> Verdict {
        self.before = print_elsewhere(ir, PrintOptions::default());
        Verdict::Run
    }

    fn after_failure(&mut self, event: &PassEvent<'_>, log: &mut dyn Log, diags: &mut Diagnostics) {
        let name = event.pass.name();
        let number = self
            .file
            .map_or(String::new(), |number| format!("-{number}"));
        let path = self
            .folder
            .join(format!("{}{number}-{name}.bir", self.stem));
        let errors = diags.iter().filter(|one| one.severity == Severity::Error);
        let pipeline = event.pipeline.dump_from(event.index);
        let text = reproducer_text(
            &format!("pass `{name}` failed"),
            errors.map(|error| error.message.as_str()),
            &self.flags,
            &pipeline,
            &self.before,
        );
        let written = fs::create_dir_all(&self.folder).and_then(|()| write_whole(&path, &text));
        log.write(&match written {
            Ok(()) => format!("reproducer: {}\n", path.display()),
            Err(error) => format!(
                "cannot write the reproducer `{}`: {error}\n",
                path.display()
            ),
        });
    }
}

/// The text of a reproducer: a module with a head that says what happened, and how it happens again.
pub fn reproducer_text<'a>(
    what: &str,
    messages: impl Iterator<Item = &'a str>,
    flags: &[String],
    pipeline: &str,
    module: &str,
) -> String {
    let mut text = format!("// {what}:\n");
    for line in messages.flat_map(str::lines) {
        text.push_str(&format!("//   {line}\n"));
    }
    text.push_str("// bir-opt --run-reproducer FILE runs it again with these flags:\n");
    let pipeline = format!("--pass-pipeline={pipeline}");
    for flag in flags.iter().chain([&pipeline]) {
        text.push_str(&format!("{MARK}{}\n", flag.replace('\n', " ")));
    }
    text.push('\n');
    text.push_str(module);
    text
}

/// The flags in the head of a reproducer; empty where it is none.
pub fn read_reproducer(text: &str) -> Vec<String> {
    text.lines()
        .take_while(|line| line.starts_with("//"))
        .filter_map(|line| line.strip_prefix(MARK))
        .map(|flag| flag.trim_end().to_owned())
        .collect()
}

/// Writes a file that appears whole or not at all.
pub(super) fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    file.write_all(text.as_bytes())?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o644))?;
    }
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
