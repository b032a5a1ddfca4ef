//! A corpus of requirements, compared with what the installers make of them: of each accepted one, `pip` and `uv` must read the package
//! that was meant and nothing else.

use std::io::Write;
use std::process::{Command, Stdio};

use serde::Deserialize;
use serde_json::{Value, json};

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

// Finding C1.
#[test]
fn uv_looks_for_what_was_meant_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    for text in corpus().accepted {
        let written = Requirement::parse(&text).unwrap().to_string();
        let file = folder.path().join("requirements.txt");
        std::fs::write(&file, &written).unwrap();
        let mut uv = Command::new("uv");
        uv.args([
            "pip",
            "compile",
            "--no-index",
            "--no-deps",
            "--offline",
            "--no-cache",
            "--no-config",
            "--no-header",
        ]);
        // A machine without `uv` has nothing to compare with.
        let Ok(output) = uv.arg(&file).current_dir(folder.path()).output() else { return };
        let told = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
        let name = written.split(|char: char| !char.is_ascii_alphanumeric() && char != '-').next().unwrap();
        // A condition that does not hold leaves nothing to look for.
        let looked_for = told.contains("not found") && told.contains(name);
        assert!(output.status.success() || looked_for, "{written:?}: {told}");
        assert!(!told.contains("error: Couldn't parse"), "{written:?}: {told}");
    }
}
