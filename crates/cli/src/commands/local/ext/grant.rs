//! `holdfast ext grant` and `holdfast ext revoke`: what an extension may reach. A running owner of the home notices by itself.

use holdfast_app::ApplicationConfig;
use holdfast_contract::host_call::Capability;
use holdfast_contract::ids::ExtensionId;
use holdfast_contract::manifest::{Access, FileGrant, Grants, ListenPort, Manifest};
use holdfast_contract::problem::{Code, Problem};
use holdfast_home::Settings;
use holdfast_loader::{candidate, single, single_file};
use holdfast_policy::{Grant, Tie, granted_to};
use serde_json::json;

use crate::arguments::GrantCommand;
use crate::chat::sanitize_for_terminal;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn grant(
    output: &Output,
    plan: &ApplicationConfig,
    command: &GrantCommand,
) -> Result<Exit, Problem> {
    if let Some(name) = command.interface.iter().find(|name| !Capability::is_grantable(name)) {
        let all: Vec<&str> = Capability::grantable().collect();
        return Err(Problem::unknown(Code::UsageInvalid, "interface of the host", name, &all, ""));
    }
    let budgets = Settings::load(&plan.home)?.settings.wasm.budgets;
    let policy = plan.home.policy(plan.profile.as_deref())?;
    let named = Grants {
        interfaces: command.interface.clone(),
        secrets: command.secret.clone(),
        network: command.network.clone(),
        listen: command.listen.iter().map(|text| listen_port(text)).collect::<Result<_, _>>()?,
        environment: command.environment.clone(),
        files: {
            let with = |access| move |path: &String| FileGrant { path: path.clone(), access };
            let read = command.read.iter().map(with(Access::Read));
            read.chain(command.write.iter().map(with(Access::Write))).collect()
        },
        extensions: Vec::new(),
    };
    let all = plan.home.extensions();
    let file = single_file(&all, &command.id);
    let is_single = file.is_some();
    let (candidate, folder) = match file {
        Some(file) => (single(&all, &file, &policy, None, budgets)?, all.join(file)),
        None => {
            let folder = super::folder(&plan.home, Some(command.id.as_ref()))?;
            (candidate(&folder, &policy, None, budgets)?, folder)
        }
    };
    if !named.listen.is_empty() && !candidate.bundle.can_listen() {
        let what =
            format!("`{}` cannot listen on ports: its lane is `{}`", command.id, candidate.bundle.lane);
        return Err(
            Problem::new(Code::ListenDenied, what).help("Only programs and Python files listen on ports.")
        );
    }
    let give = if named.is_empty() {
        candidate.manifest.requests()
    } else if is_single {
        // A single file gets what is named, also if its head does not ask for it.
        named
    } else {
        granted_to(&candidate.manifest, &named)
    };
    if give.is_empty() {
        return Err(nothing_given(&candidate.manifest));
    }
    let tied_to = if command.folder {
        Tie::Path(folder.display().to_string())
    } else {
        Tie::Digest(candidate.bundle.content())
    };
    let grant = Grant { extension: candidate.manifest.id.clone(), tied_to, give };
    plan.home.remember_grant(&grant)?;
    if output.json {
        output.document(&grant)?;
    } else {
        let until =
            if command.folder { "as long as it is in this folder" } else { "until its content changes" };
        output.line(format!("`{}` may use {} {until}", grant.extension, json!(grant.give)))?;
        let reason = &candidate.manifest.policy.reason;
        if !reason.is_empty() {
            output.line(format!("its author says why: {}", sanitize_for_terminal(reason)))?;
        }
    }
    Ok(Exit::Done)
}

fn listen_port(text: &str) -> Result<ListenPort, Problem> {
    text.parse().map_err(|why: String| {
        Problem::new(Code::UsageInvalid, format!("`{text}` cannot be listened on: {why}"))
            .help("Name a port from 1024 to 65535: `--listen 8080` or `--listen 127.0.0.1:8080`.")
    })
}

/// Why nothing could be given, and what could be.
fn nothing_given(manifest: &Manifest) -> Problem {
    let id = &manifest.id;
    let (what, help) = if manifest.grants.is_empty() {
        let help = format!(
            "Name what it may use: `holdfast ext grant {id} --network HOST:PORT`, `--listen PORT` or `--secret NAME`. Interfaces are given only if the manifest asks for them."
        );
        (format!("the manifest of `{id}` asks for nothing"), help)
    } else {
        let help = format!(
            "It asks for: {}. Only what a manifest asks for can be given.",
            json!(manifest.requests())
        );
        (format!("the manifest of `{id}` does not ask for that"), help)
    };
    Problem::new(Code::UsageInvalid, what).help(help)
}

pub(crate) fn revoke(output: &Output, plan: &ApplicationConfig, id: &str) -> Result<Exit, Problem> {
    let id = ExtensionId::from(id);
    let before = plan.home.policy(None)?;
    let mut granted: Vec<&str> = before.grants().iter().map(|grant| grant.extension.as_str()).collect();
    granted.sort_unstable();
    granted.dedup();
    if !granted.contains(&id.as_str()) {
        let empty = "No extension has grants.";
        let (code, kind) = (Code::UsageInvalid, "grant to the extension");
        return Err(Problem::unknown(code, kind, id.as_str(), &granted, empty));
    }
    plan.home.revoke_grants(&id)?;
    if output.json {
        output.document(&json!({ "extension": id, "revoked": true }))?;
    } else {
        output.line(format!("revoked the grants of `{id}`"))?;
    }
    Ok(Exit::Done)
}
