//! `holdfast secret …`: the names of secrets, storing and removing them. A value is read from the terminal without echo or from
//! standard input, and is never printed.

use holdfast_contract::problem::{Code, Problem};
use holdfast_rpc::{
    NoParams, SecretInfo, SecretMethod, SecretRemove, SecretRemoved, SecretSet, SecretStored,
};
use holdfast_runtime::secrets::SecretName;

use crate::arguments::Secret;
use crate::client::link::Link;
use crate::client::typed::hidden_value;
use crate::exit::Exit;
use crate::output::{Output, report, table};

pub(crate) async fn secret(output: &Output, link: &Link, command: Secret) -> Result<Exit, Problem> {
    match command {
        Secret::List => list(output, link).await,
        Secret::Set { name } => set(output, link, name).await,
        Secret::Remove { name } => remove(output, link, name).await,
    }
}

async fn list(output: &Output, link: &Link) -> Result<Exit, Problem> {
    let secrets: Vec<SecretInfo> = link.client.ask(&SecretMethod::List(NoParams {})).await?;
    if output.json {
        return output.documents(&secrets);
    }
    let rows = secrets.into_iter().map(|secret| [secret.name, secret.store, secret.place]);
    let empty = "no secrets are stored; `holdfast secret set NAME` stores one";
    output.lines(table(["secret", "store", "where"], rows, empty))?;
    Ok(Exit::Done)
}

async fn set(output: &Output, link: &Link, name: String) -> Result<Exit, Problem> {
    // A name that no secret may have is refused before anything is typed.
    let name = name.parse::<SecretName>()?.to_string();
    let value = hidden_value(&name)?;
    let stored: SecretStored = link.client.ask(&SecretMethod::Set(SecretSet { name, value })).await?;
    if let Some(store) = &stored.hidden_by {
        let what = format!("the {store} has another secret `{}`, which takes precedence", stored.name);
        let help = format!("`holdfast secret list` shows where `{}` comes from.", stored.name);
        report(&Problem::warning(Code::SecretReadOnly, what).help(help));
    }
    if output.json {
        output.document(&stored)?;
    } else {
        output.line(format!("{} is stored ({})", stored.name, stored.store))?;
    }
    Ok(Exit::Done)
}

async fn remove(output: &Output, link: &Link, name: String) -> Result<Exit, Problem> {
    let removed: SecretRemoved = link.client.ask(&SecretMethod::Remove(SecretRemove { name })).await?;
    if output.json {
        output.document(&removed)?;
    } else if !removed.stores.is_empty() {
        output.line(format!("{} is removed ({})", removed.name, removed.stores.join(", ")))?;
    }
    let Some(store) = &removed.left_in else { return Ok(Exit::Done) };
    let what = format!("`{}` is still set in the {store}", removed.name);
    let help = "A variable of the process is unset where the program is started.";
    report(&Problem::new(Code::SecretReadOnly, what).help(help));
    Ok(Exit::Failed)
}
