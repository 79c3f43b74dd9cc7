//! Reading inputs and writing outputs.

use std::fmt;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

use bir_dialect::bir::files::folder_of;

/// A text read from a file or from standard input.
pub struct Input {
    /// Its name as reports show it.
    pub name: String,
    /// Its text.
    pub text: String,
    /// Its folder, which files it names are relative to; empty for standard input.
    pub folder: PathBuf,
}

impl Input {
    /// Reads a file, or standard input for `-`.
    ///
    /// The error is a message that names the file.
    pub fn read(path: &str) -> Result<Input, String> {
        let name = if path == "-" { "<stdin>" } else { path };
        let mut bytes = Vec::new();
        let read = if path == "-" {
            io::stdin().lock().read_to_end(&mut bytes).map(|_| ())
        } else {
            fs::read(path).map(|read| bytes = read)
        };
        read.map_err(|error| format!("cannot read `{name}`: {error}"))?;
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Input {
                name: name.to_owned(),
                text,
                folder: folder_of(Path::new(path)),
            }),
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                let before = &error.as_bytes()[..at];
                let line = before.iter().filter(|&&c| c == b'\n').count() + 1;
                Err(format!(
                    "`{name}` is no text: byte {at} (line {line}) is not valid UTF-8"
                ))
            }
        }
    }

    /// The chunks `--split-input-file` makes: what stands between lines `// -----`.
    pub fn chunks(&self, split: bool) -> Vec<Range<usize>> {
        let mut chunks = Vec::new();
        let mut start = 0;
        if split {
            let mut at = 0;
            for line in self.text.split_inclusive('\n') {
                if line.trim_end().starts_with("// -----") {
                    chunks.push(start..at);
                    start = at + line.len();
                }
                at += line.len();
            }
        }
        chunks.push(start..self.text.len());
        chunks
    }
}

/// Where results go.
pub enum Output {
    /// Standard output.
    Stdout,
    /// A file, which appears whole or not at all.
    File(PathBuf),
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Output::Stdout => f.write_str("standard output"),
            Output::File(path) => write!(f, "`{}`", path.display()),
        }
    }
}

impl Output {
    /// Standard output for `-`, else a file.
    pub fn new(path: &str) -> Output {
        match path {
            "-" => Output::Stdout,
            path => Output::File(PathBuf::from(path)),
        }
    }

    /// Whether it is a file in another folder than that one.
    pub fn is_outside(&self, folder: &Path) -> bool {
        let known = |folder: &Path| {
            let empty = folder.as_os_str().is_empty();
            fs::canonicalize(if empty { Path::new(".") } else { folder }).ok()
        };
        match self {
            Output::Stdout => false,
            Output::File(path) => known(&folder_of(path)) != known(folder),
        }
    }

    /// Writes a text.
    ///
    /// The error is a message that names the file. A closed pipe is no error.
    pub fn write(&self, text: &str) -> Result<(), String> {
        self.write_with(|out| out.write_all(text.as_bytes()))
    }

    /// Writes what `body` writes: to a temporary file beside the target, which is then renamed.
    ///
    /// The error is a message that names the file. A closed pipe is no error.
    pub fn write_with(
        &self,
        body: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
    ) -> Result<(), String> {
        match self {
            Output::Stdout => {
                let mut out = io::stdout().lock();
                match body(&mut out).and_then(|()| out.flush()) {
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                    Err(error) => Err(format!("cannot write to {self}: {error}")),
                    Ok(()) => Ok(()),
                }
            }
            Output::File(path) => {
                write_file(path, body).map_err(|error| format!("cannot write {self}: {error}"))
            }
        }
    }
}

fn write_file(
    path: &Path,
    write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
) -> io::Result<()> {
    // A link stays one: what it leads to is replaced.
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let path = real.as_path();
    // Devices and pipes cannot be replaced by a rename.
    if fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
        return write(&mut fs::OpenOptions::new().write(true).open(path)?);
    }
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    write(&mut file)?;
    file.as_file().sync_data()?;
    // Temporary files are private; a result has the permissions an ordinary file would have.
    if let Ok(meta) = fs::metadata(path) {
        fs::set_permissions(file.path(), meta.permissions())?;
    } else {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(file.path(), fs::Permissions::from_mode(0o644))?;
        }
    }
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
