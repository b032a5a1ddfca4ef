//! A corpus of requirements, compared with what the installers make of them: of each accepted one, `pip` and `uv` must read the package
//! that was meant and nothing else, and one of them must read something else from each refused one, unless that is listed as stricter.
//! Without `pip` and `uv` these tests fail.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::Deserialize;
use serde_json::{Value, json};
use toml_edit::DocumentMut;

use super::requirement::Requirement;

#[derive(Deserialize)]
struct Corpus {
    accepted: Vec<String>,
    refused: Vec<String>,
    /// Those of the refused ones that both installers read as one package: on conditions that they disagree about, or with a text that they
    /// leave out or that another version reads as an option or a file.
    stricter: Vec<String>,
}

/// What to do about a missing installer.
const MISSING: &str = "`./scripts/test test` installs what this test needs; to run it alone, call `./scripts/setup uv`, which says what is \
                       missing, and `source scripts/tools.sh`. Python 3.10 or later needs pip: `python3 -m pip --version`.";

/// What a Python program prints for this input. It needs `pip`.
fn python(program: &str, input: &impl serde::Serialize) -> Value {
    let mut command = Command::new("python3");
    command.args(["-c", program]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut python =
        command.spawn().unwrap_or_else(|error| panic!("python3 cannot be started ({error}). {MISSING}"));
    let (mut pipe, input) = (python.stdin.take().unwrap(), serde_json::to_vec(input).unwrap());
    // A program that ends early takes no input; its status says why.
    let _ended = pipe.write_all(&input);
    drop(pipe);
    let output = python.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "pip cannot be used: {told} {MISSING}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn corpus() -> Corpus {
    serde_json::from_str(include_str!("corpus.json")).unwrap()
}

// Finding C1.
#[test]
fn the_corpus_is_accepted_and_refused_as_it_says() {
    let Corpus { accepted, refused, stricter } = corpus();
    assert!(accepted.len() >= 50 && refused.len() >= 100);
    assert!(stricter.iter().all(|text| refused.contains(text)), "{stricter:?}");
    for text in &accepted {
        assert!(Requirement::parse(text).is_ok(), "{text:?}: {:?}", Requirement::parse(text));
    }
    for text in &refused {
        assert!(Requirement::parse(text).is_err(), "{text:?} became {}", Requirement::parse(text).unwrap());
    }
}

/// Reads requirements as `pip install -r` does, and prints what each line became, beside what the parser of PEP 508 says about the text
/// that it was written from.
const PIP: &str = r#"
import json, sys, tempfile
from pip._internal.network.session import PipSession
from pip._internal.req.req_file import parse_requirements
from pip._internal.req.constructors import install_req_from_parsed_requirement
from pip._vendor.packaging.requirements import Requirement
from pip._vendor.packaging.utils import canonicalize_name
def parts(r, marker):
    # An arbitrary equality is a text and is compared as one.
    versions = sorted(str(v) for v in r.specifier)
    return [canonicalize_name(r.name), sorted(r.extras), versions, str(marker or ""), r.url]
answers = []
for text, written in json.load(sys.stdin):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(written); file.flush()
        found = list(parse_requirements(file.name, PipSession()))
    read = [install_req_from_parsed_requirement(one) for one in found]
    meant = Requirement(text.split(" --hash")[0].replace("os.name", "os_name"))
    answers.append({
        "text": text,
        "meant": parts(meant, meant.marker),
        # pip takes the marker off the requirement before it parses that.
        "read": [parts(one.req, one.markers or one.req.marker) for one in read],
        "links": [str(one.link) for one in read if one.link or one.editable],
        "options": [sorted(one.options or {}) for one in found],
    })
print(json.dumps(answers))
"#;

// Finding C1.
#[test]
fn pip_reads_what_was_meant_and_nothing_else() {
    let written: Vec<(String, String)> = corpus()
        .accepted
        .into_iter()
        .map(|text| {
            let written = Requirement::parse(&text).unwrap().to_string();
            (text, written)
        })
        .collect();
    let answers = python(PIP, &written);
    let answers = answers.as_array().unwrap();
    assert_eq!(answers.len(), written.len());
    for answer in answers {
        assert_eq!(answer["read"], json!([answer["meant"]]), "{answer}");
        assert_eq!(answer["links"], json!([]), "{answer}");
        let options = answer["options"][0].as_array().unwrap();
        assert!(options.iter().all(|option| option == "hashes"), "{answer}");
    }
}

/// Whether `pip install -r` reads one package of an index from each file, and no option of the file. What it does not parse is `false`.
const PIP_READS_ONE: &str = r#"
import json, os, sys, tempfile
from pip._internal.network.session import PipSession
from pip._internal.req.req_file import RequirementsFileParser, get_line_parser, parse_requirements
from pip._internal.req.constructors import install_req_from_parsed_requirement
def reads_one(text):
    with open("list.txt", "w", newline="") as file:
        file.write(text)
    # Each line of the file, those with options among them.
    lines = list(RequirementsFileParser(PipSession(), get_line_parser(None)).parse("list.txt", constraint=False))
    found = list(parse_requirements("list.txt", PipSession()))
    if len(lines) != 1 or len(found) != 1:
        return False
    one = install_req_from_parsed_requirement(found[0])
    is_plain = one.req is not None and not one.link and not one.editable
    return is_plain and not set(found[0].options or {}) - {"hashes"}
answers, sys.stderr = [], open(os.devnull, "w")
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for text in json.load(sys.stdin):
        try:
            answers.append(reads_one(text))
        except (Exception, SystemExit):
            answers.append(False)
    os.chdir("/")
print(json.dumps(answers))
"#;

/// What is refused is refused because one of the installers would make something else of it. What is not, is listed.
#[test]
fn what_is_refused_is_something_else_to_an_installer_or_listed_as_stricter() {
    let Corpus { accepted, refused, stricter } = corpus();
    let read: Vec<bool> = serde_json::from_value(python(PIP_READS_ONE, &refused)).unwrap();
    assert_eq!(read.len(), refused.len());
    assert!(read.iter().filter(|is_one| !**is_one).count() >= 60, "pip is asked: {read:?}");
    let folder = tempfile::tempdir().unwrap();
    let mut unlisted = Vec::new();
    for text in refused.iter().zip(read).filter(|(_, is_one)| *is_one).map(|(text, _)| text) {
        if !stricter.contains(text) && !uv_reads_something_else(folder.path(), text) {
            unlisted.push(text);
        }
    }
    assert!(unlisted.is_empty(), "both installers read one package from these: {unlisted:#?}");
    // The comparison tells them apart: what is accepted is one package for both.
    let plain: Vec<String> =
        accepted.iter().map(|text| Requirement::parse(text).unwrap().to_string()).collect();
    let read: Vec<bool> = serde_json::from_value(python(PIP_READS_ONE, &plain)).unwrap();
    let others: Vec<_> = plain.iter().zip(read).filter(|(_, is_one)| !is_one).collect();
    assert!(others.is_empty(), "{others:#?}");
}

/// Compares requirements by what they mean: the package, its extras and versions, and the machines on which the marker holds.
const MEANING: &str = r#"
import itertools, json, sys
from pip._vendor.packaging.requirements import Requirement
from pip._vendor.packaging.utils import canonicalize_name
from pip._vendor.packaging.version import Version
pythons = ["3.0", "3.8", "3.9", "3.10", "3.13", "4.0"]
systems = [("posix", "linux", "Linux", "x86_64"), ("posix", "darwin", "Darwin", "arm64"),
           ("nt", "win32", "Windows", "AMD64"), ("posix", "linux", "Linux", "aarch64")]
implementations = [("cpython", "CPython"), ("pypy", "PyPy")]
def version(one):
    text = one.version
    if one.operator == "===": return text
    return str(Version(text[:-2])) + ".*" if text.endswith(".*") else str(Version(text))
def where(marker):
    if marker is None: return "everywhere"
    holds = []
    for python, system, implementation, extra in itertools.product(pythons, systems, implementations, ["", "x"]):
        holds.append(marker.evaluate({
            "python_version": python, "python_full_version": python + ".1", "os_name": system[0], "sys_platform": system[1],
            "platform_system": system[2], "platform_machine": system[3], "implementation_name": implementation[0],
            "platform_python_implementation": implementation[1], "implementation_version": python + ".1", "extra": extra,
            "platform_release": "5.10", "platform_version": "x"}))
    return "everywhere" if all(holds) else "".join("1" if one else "0" for one in holds)
def meaning(text):
    r = Requirement(text)
    return [canonicalize_name(r.name), sorted(r.extras), sorted([s.operator, version(s)] for s in r.specifier), where(r.marker), r.url]
print(json.dumps([[meaning(one) for one in pair] for pair in json.load(sys.stdin)]))
"#;

/// The `uv` that set-up installs, or the machine's.
fn uv() -> Command {
    Command::new(std::env::var_os("HOLDFAST_UV").unwrap_or_else(|| "uv".into()))
}

/// What `uv` takes a file of requirements for: the list that it writes into a project.
fn read_by_uv(folder: &Path, requirements: &str) -> Result<DocumentMut, String> {
    let project = folder.join("pyproject.toml");
    // A name that no requirement has: a project cannot require itself.
    let empty = "[project]\nname = \"none-of-them\"\nversion = \"0\"\nrequires-python = \">=3.0\"\ndependencies = []\n";
    fs::write(&project, empty).unwrap();
    fs::write(folder.join("list.txt"), requirements).unwrap();
    let mut uv = uv();
    uv.args(["add", "--frozen", "--offline", "--no-cache", "--no-config", "-r", "list.txt"]);
    uv.current_dir(folder).env("UV_PYTHON_DOWNLOADS", "never");
    let output = uv.output().unwrap_or_else(|error| panic!("uv cannot be started ({error}). {MISSING}"));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    // It warns about a condition that it leaves out.
    if !output.status.success() || told.contains("warning") {
        return Err(told);
    }
    Ok(fs::read_to_string(project).unwrap().parse().unwrap())
}

/// Whether `uv` refuses a text, warns about it, or takes anything but one package of an index from it.
fn uv_reads_something_else(folder: &Path, text: &str) -> bool {
    match read_by_uv(folder, text) {
        Ok(read) => {
            read.as_table().len() > 1 || read["project"]["dependencies"].as_array().unwrap().len() != 1
        }
        Err(_) => true,
    }
}

// Finding C1.
#[test]
fn uv_reads_what_was_meant_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let mut pairs = Vec::new();
    for text in corpus().accepted {
        let written = Requirement::parse(&text).unwrap().to_string();
        let read = read_by_uv(folder.path(), &written).unwrap_or_else(|told| panic!("{written:?}: {told}"));
        // An option of the file, such as another index, would be a table of its own.
        assert_eq!(read.as_table().len(), 1, "{written:?}: {read:?}");
        let read = read["project"]["dependencies"].as_array().unwrap();
        assert_eq!(read.len(), 1, "{written:?}: {read:?}");
        let meant = text.split(" --hash").next().unwrap().replace("os.name", "os_name");
        pairs.push([meant, read.get(0).unwrap().as_str().unwrap().to_owned()]);
    }
    let meanings: Vec<[Value; 2]> = serde_json::from_value(python(MEANING, &pairs)).unwrap();
    assert_eq!(meanings.len(), pairs.len());
    for ([meant, read], pair) in meanings.iter().zip(&pairs) {
        assert_eq!(meant, read, "{pair:?}");
    }
}

// Finding C1: with the options of an installation.
#[test]
fn uv_looks_for_what_was_meant_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--no-index", "--no-deps", "--offline", "--no-cache", "--no-config", "--no-header"];
    let looks = |text: &str| {
        let file = folder.path().join("requirements.txt");
        fs::write(&file, text).unwrap();
        let mut uv = uv();
        uv.args(["pip", "compile"]).args(flags).arg(&file).current_dir(folder.path());
        let output = uv.output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).replace('\n', " "))
    };
    for text in corpus().accepted {
        let written = Requirement::parse(&text).unwrap().to_string();
        let (found, told) = looks(&written);
        let name = written.split(|char: char| !char.is_ascii_alphanumeric() && char != '-').next().unwrap();
        // A condition that does not hold leaves nothing to look for.
        let looked_for = told.contains("you require") && told.contains(name);
        assert!(found || looked_for, "{written:?}: {told}");
        assert!(!told.contains("Couldn't parse"), "{written:?}: {told}");
    }
}

/// Planted: what is refused here would become something else there, so the comparison above can fail.
#[test]
fn uv_reads_something_else_from_what_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let changes = |text: &str| uv_reads_something_else(folder.path(), text);
    for text in ["a\nb", "-r other.txt", "a==1 ${HOME}", "a==1\u{2028}--no-index"] {
        assert!(Requirement::parse(text).is_err() && changes(text), "{text:?}");
    }
    // It leaves out what it does not understand, and installs the package everywhere.
    let read = read_by_uv(folder.path(), "a; python_version not in '3.8, 3.9'").unwrap();
    assert_eq!(read["project"]["dependencies"][0].as_str(), Some("a"));
}
