//! YAML files under error codes: `holdfast_yaml` finds the problems, and a [`Format`] says with which code each
//! is reported.
//!
//! Manifests, settings, policies and scripts are read with it. No file is opened here.

use std::fmt;
use std::path::{Path, PathBuf};

use holdfast_yaml::{
    DecodeError, DecodeOptions, Decoded, Diagnostic, DiagnosticKind, Field, Reported, YamlDocument,
};

use crate::problem::{Code, Location, Problem, Severity};

/// A file format and the codes of its problems.
#[derive(Debug)]
pub struct Format {
    /// The argument of `holdfast schema` that describes it: `manifest`, `settings`, `policy`.
    pub name: &'static str,
    /// The maximal size in bytes. Expanded aliases may have four times as many.
    pub max_bytes: usize,
    /// The codes of its problems.
    pub codes: Codes,
}

impl Format {
    fn options(&self) -> DecodeOptions {
        DecodeOptions {
            schema: self.name,
            max_bytes: self.max_bytes,
            syntax_help: self.codes.syntax.help(),
            size_help: self.codes.too_large.help(),
        }
    }

    fn problem(&self, file: &Path, severity: Severity, diagnostic: Diagnostic) -> Problem {
        let Diagnostic { kind, position, field, message, help } = diagnostic;
        let location =
            Location { file: file.to_owned(), line: position.line, column: position.column, field };
        Problem::new(self.codes.of(kind), message).with(severity).at(location).help(help)
    }

    fn problems(&self, file: &Path, severity: Severity, diagnostics: Vec<Diagnostic>) -> Vec<Problem> {
        diagnostics.into_iter().map(|diagnostic| self.problem(file, severity, diagnostic)).collect()
    }

    fn outcome<T>(
        &self,
        file: &Path,
        decoded: Result<Decoded<T>, DecodeError>,
    ) -> Result<YamlRead<T>, YamlRejected> {
        match decoded {
            Ok(Decoded { value, warnings, document }) => Ok(YamlRead {
                value,
                warnings: self.problems(file, Severity::Warning, warnings),
                source: YamlSource { file: file.to_owned(), document },
            }),
            Err(DecodeError { errors, warnings }) => Err(YamlRejected {
                errors: self.problems(file, Severity::Error, errors),
                warnings: self.problems(file, Severity::Warning, warnings),
            }),
        }
    }
}

/// The code for each sort of problem.
#[derive(Debug)]
pub struct Codes {
    /// The file is not valid UTF-8.
    pub unreadable: Code,
    /// The file is not valid YAML.
    pub syntax: Code,
    /// A field has the wrong type.
    pub wrong_type: Code,
    /// A field is unknown; a warning.
    pub unknown_field: Code,
    /// A duplicate key; a warning.
    pub duplicate_key: Code,
    /// A required field is missing.
    pub missing_field: Code,
    /// A value of the right type is invalid.
    pub value: Code,
    /// The file, or what its aliases expand to, is too large.
    pub too_large: Code,
}

impl Codes {
    /// One code for everything.
    pub const fn all(code: Code) -> Self {
        Self {
            unreadable: code,
            syntax: code,
            wrong_type: code,
            unknown_field: code,
            duplicate_key: code,
            missing_field: code,
            value: code,
            too_large: code,
        }
    }

    fn of(&self, kind: DiagnosticKind) -> Code {
        match kind {
            DiagnosticKind::Unreadable => self.unreadable,
            DiagnosticKind::Syntax => self.syntax,
            DiagnosticKind::WrongType => self.wrong_type,
            DiagnosticKind::UnknownField => self.unknown_field,
            DiagnosticKind::DuplicateKey => self.duplicate_key,
            DiagnosticKind::MissingField => self.missing_field,
            DiagnosticKind::Value => self.value,
            DiagnosticKind::TooLarge => self.too_large,
            DiagnosticKind::Unavailable => Code::NotAvailable,
        }
    }
}

/// A file that was read without an error.
#[derive(Clone, Debug)]
pub struct YamlRead<T> {
    /// The value.
    pub value: T,
    /// Problems that do not prevent reading, in the order of the lines.
    pub warnings: Vec<Problem>,
    /// The positions of all fields, for problems that are found later.
    pub source: YamlSource,
}

/// Why a file could not be read.
#[derive(Clone, Debug, PartialEq)]
pub struct YamlRejected {
    /// At least one error, in the order of the lines.
    pub errors: Vec<Problem>,
    /// Warnings; often the cause of an error, such as a misspelt field.
    pub warnings: Vec<Problem>,
}

impl From<YamlRejected> for Problem {
    /// All of them as one problem.
    fn from(rejected: YamlRejected) -> Self {
        let all = Problem::all(rejected.errors.into_iter().chain(rejected.warnings));
        all.unwrap_or_else(|| Problem::new(Code::Internal, "a file was rejected without a reason"))
    }
}

impl fmt::Display for YamlRejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.errors.iter().chain(&self.warnings).enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for YamlRejected {}

/// The positions of a file's fields.
#[derive(Clone, Debug)]
pub struct YamlSource {
    file: PathBuf,
    document: YamlDocument,
}

impl YamlSource {
    /// The location of a field, written `agent.limits.max_turns` or `depends_on[0]`. For a field that is not in
    /// the file it is the location of the nearest field around it.
    pub fn locate(&self, field: &str) -> Location {
        let position = self.document.locate(field);
        Location {
            file: self.file.clone(),
            line: position.line,
            column: position.column,
            field: Some(field.to_owned()),
        }
    }
}

/// Reads a text. All problems are found in one pass, unless the text is not valid YAML. The file's name is for
/// messages only.
pub fn read<T>(
    format: &Format,
    file: &Path,
    text: &str,
    read: impl FnOnce(&Field<'_>) -> Result<T, Reported>,
) -> Result<YamlRead<T>, YamlRejected> {
    format.outcome(file, holdfast_yaml::decode(&format.options(), text, read))
}

/// The same for bytes that may not be UTF-8.
pub fn read_bytes<T>(
    format: &Format,
    file: &Path,
    bytes: &[u8],
    read: impl FnOnce(&Field<'_>) -> Result<T, Reported>,
) -> Result<YamlRead<T>, YamlRejected> {
    format.outcome(file, holdfast_yaml::decode_bytes(&format.options(), bytes, read))
}

/// Turns those warnings into errors that `refused` selects.
pub fn stricter<T>(
    outcome: Result<YamlRead<T>, YamlRejected>,
    refused: impl Fn(&Problem) -> bool,
) -> Result<YamlRead<T>, YamlRejected> {
    let (mut errors, warnings, read) = match outcome {
        Ok(read) => (Vec::new(), read.warnings, Some((read.value, read.source))),
        Err(YamlRejected { errors, warnings }) => (errors, warnings, None),
    };
    let (stopping, warnings): (Vec<_>, Vec<_>) = warnings.into_iter().partition(refused);
    errors.extend(stopping.into_iter().map(|problem| problem.with(Severity::Error)));
    errors.sort_by_key(|problem| problem.location.as_ref().map(|at| (at.line, at.column)));
    match read {
        Some((value, source)) if errors.is_empty() => Ok(YamlRead { value, warnings, source }),
        _ => Err(YamlRejected { errors, warnings }),
    }
}
