//! A corpus of requirements, compared with what the installers make of them: of each accepted one, `pip` and `uv` must read the package
//! that was meant and nothing else.

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
}

fn corpus() -> Corpus {
    serde_json::from_str(include_str!("corpus.json")).unwrap()
}

// Finding C1.
#[test]
fn the_corpus_is_accepted_and_refused_as_it_says() {
    let Corpus { accepted, refused } = corpus();
    assert!(accepted.len() + refused.len() >= 100);
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
try:
    from pip._internal.network.session import PipSession
    from pip._internal.req.req_file import parse_requirements
    from pip._internal.req.constructors import install_req_from_parsed_requirement
    from pip._vendor.packaging.requirements import Requirement
    from pip._vendor.packaging.utils import canonicalize_name
except ImportError:
    print("null"); sys.exit()
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
    let python =
        Command::new("python3").args(["-c", PIP]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    // A machine without Python has nothing to compare with.
    let Ok(mut python) = python else { return };
    let input = serde_json::to_vec(&written).unwrap();
    python.stdin.take().unwrap().write_all(&input).unwrap();
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success());
    let answers: Option<Vec<Value>> = serde_json::from_slice(&output.stdout).unwrap();
    let Some(answers) = answers else { return };
    assert_eq!(answers.len(), written.len());
    for answer in answers {
        assert_eq!(answer["read"], json!([answer["meant"]]), "{answer}");
        assert_eq!(answer["links"], json!([]), "{answer}");
        let options = answer["options"][0].as_array().unwrap();
        assert!(options.iter().all(|option| option == "hashes"), "{answer}");
    }
}

/// Compares requirements by what they mean: the package, its extras and versions, and the machines on which the marker holds.
const MEANING: &str = r#"
import itertools, json, sys
try:
    from pip._vendor.packaging.requirements import Requirement
    from pip._vendor.packaging.utils import canonicalize_name
    from pip._vendor.packaging.version import Version
except ImportError:
    print("null"); sys.exit()
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
    let output = uv.output().unwrap_or_else(|error| {
        panic!("uv cannot be started ({error}). `./scripts/test test` installs it; to run this test alone, call `./scripts/setup uv` and `source scripts/tools.sh`.")
    });
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    // It warns about a condition that it leaves out.
    if !output.status.success() || told.contains("warning") {
        return Err(told);
    }
    Ok(fs::read_to_string(project).unwrap().parse().unwrap())
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
    let mut python = Command::new("python3");
    let python = python.args(["-c", MEANING]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut python) = python else { return };
    python.stdin.take().unwrap().write_all(&serde_json::to_vec(&pairs).unwrap()).unwrap();
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success());
    let Some(meanings) = serde_json::from_slice::<Option<Vec<[Value; 2]>>>(&output.stdout).unwrap() else {
        return;
    };
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
    let changes = |text: &str| match read_by_uv(folder.path(), text) {
        Ok(read) => {
            read.as_table().len() > 1 || read["project"]["dependencies"].as_array().unwrap().len() != 1
        }
        Err(_) => true,
    };
    for text in ["a\nb", "-r other.txt", "a==1 ${HOME}", "a==1\u{2028}--no-index"] {
        assert!(Requirement::parse(text).is_err() && changes(text), "{text:?}");
    }
    // It leaves out what it does not understand, and installs the package everywhere.
    let read = read_by_uv(folder.path(), "a; python_version not in '3.8, 3.9'").unwrap();
    assert_eq!(read["project"]["dependencies"][0].as_str(), Some("a"));
}
