//! Reads the parts of a policy that give something: grants to extensions, owners on channels, and caps on what may be spent.

use holdfast_contract::digest::{Digest, MAX_EXACT_INTEGER};
use holdfast_contract::ids::{ExtensionId, Millis};
use holdfast_contract::manifest::{Access, FileGrant, Grants, interface, listen_port, variable};
use holdfast_yaml::{Field, Object};

use super::Result;
use crate::caps::{Cap, Caps, Dollars};
use crate::document::OwnerIdentity;
use crate::grants::{Grant, Host, Tie, Tree};

/// One grant.
pub(super) fn grant(field: &Field<'_>) -> Result<Grant> {
    field.object(|object| {
        object.advise("digest", "Move it below `tied_to:`.");
        object.advise("path", "Move it below `tied_to:`.");
        for kind in ["network", "listen", "files", "secrets", "environment", "extensions", "interfaces"] {
            object.advise(kind, "Move it below `give:`.");
        }
        let extension = object.required("extension", "my_extension", Field::word);
        let tied_to = object.required("tied_to", "{ digest: … }", tie);
        let give = object.required("give", "{ network: [api.example.com] }", grants);
        Ok(Grant { extension: extension?.into(), tied_to: tied_to?, give: give? })
    })
}

/// A user of a channel who is the owner of the home. No pattern: everybody who fits would be the owner.
pub(super) fn owner(field: &Field<'_>) -> Result<OwnerIdentity> {
    field.object(|object| {
        let channel = object.required("channel", "my_channel", Field::word);
        let user = object.required("user", "\"4711\"", |field| {
            let user = field.filled()?;
            if user.contains(['*', '?']) {
                let what = format!("`{user}` looks like a pattern, and a user is compared exactly");
                return Err(field.reject(what, "List each user who is the owner of the home."));
            }
            Ok(user)
        });
        Ok(OwnerIdentity { channel: channel?.into(), user: user? })
    })
}

fn tie(field: &Field<'_>) -> Result<Tie> {
    field.object(|object| {
        let digest = object.optional("digest", digest)?;
        let path = object.optional("path", folder)?;
        match (digest, path) {
            (Some(digest), None) => Ok(Tie::Digest(digest)),
            (None, Some(path)) => Ok(Tie::Path(path)),
            (None, None) => {
                Err(object.missing("digest", "Add `digest: …`; `holdfast ext grant` writes it for you."))
            }
            (Some(_), Some(_)) => {
                let what = format!("{} has both a digest and a path", field.subject());
                Err(field
                    .reject(what, "A grant is for one content or for one folder; remove one of the two."))
            }
        }
    })
}

fn folder(field: &Field<'_>) -> Result<String> {
    let path = path(field)?;
    if path.starts_with('/') {
        Ok(path)
    } else {
        Err(field.reject(format!("`{path}` is not an absolute path"), "Write the whole path, from `/`."))
    }
}

fn digest(field: &Field<'_>) -> Result<Digest> {
    let text = field.text()?;
    Digest::parse(&text).ok_or_else(|| {
        let what = format!("{} is not a digest", field.subject());
        field.reject(what, "A digest has 64 lower-case hexadecimal digits; `holdfast ext show` prints it.")
    })
}

fn grants(field: &Field<'_>) -> Result<Grants> {
    field.object(|object| {
        object.advise("env", "Did you mean `environment`?");
        object.advise("hosts", "Did you mean `network`?");
        object.advise("ports", "Did you mean `listen`?");
        let network = object.defaulted("network", Vec::new(), |field| field.each(host));
        let listen = object.defaulted("listen", Vec::new(), |field| field.each(listen_port));
        let files = object.defaulted("files", Vec::new(), |field| field.each(file));
        let secrets = names(object, "secrets");
        let environment = object.defaulted("environment", Vec::new(), |field| field.each(variable));
        let extensions = names(object, "extensions");
        let interfaces = object.defaulted("interfaces", Vec::new(), |field| {
            field.each(|field| name(field).and(interface(field)))
        });
        Ok(Grants {
            network: network?,
            listen: listen?,
            files: files?,
            secrets: secrets?,
            environment: environment?,
            extensions: extensions?.into_iter().map(ExtensionId::from).collect(),
            interfaces: interfaces?,
        })
    })
}

fn host(field: &Field<'_>) -> Result<String> {
    let text = field.word()?;
    match Host::parse(&text) {
        Ok(_) => Ok(text),
        Err(why) => {
            let help = "Write a host such as `api.example.com`, `*.example.com` or `localhost:8080`.";
            Err(field.reject(format!("`{text}` cannot be granted: {why}"), help))
        }
    }
}

fn file(field: &Field<'_>) -> Result<FileGrant> {
    if !field.is_map() {
        return Ok(FileGrant { path: path(field)?, access: Access::Read });
    }
    field.object(|object| {
        let path = object.required("path", "~/notes", path);
        let access = object.defaulted("access", Access::default(), |field| field.choice(Access::ALL));
        Ok(FileGrant { path: path?, access: access? })
    })
}

fn path(field: &Field<'_>) -> Result<String> {
    let path = field.filled()?;
    if path.split('/').any(|part| part == "..") {
        return Err(field.reject(format!("`{path}` has `..` in it"), "Write the folder that is meant."));
    }
    if path.contains('*') {
        let help = "A folder is granted with everything in it; name the folder itself.";
        return Err(field.reject(format!("`{path}` has `*` in it"), help));
    }
    match Tree::parse(&path) {
        Ok(_) => Ok(path),
        Err(why) => {
            let help = "Write an absolute path, or one from `~`, or one from the working folder.";
            Err(field.reject(format!("`{path}` cannot be granted: {why}"), help))
        }
    }
}

fn names(object: &mut Object<'_, '_>, kind: &'static str) -> Result<Vec<String>> {
    object.defaulted(kind, Vec::new(), |field| field.each(name))
}

fn name(field: &Field<'_>) -> Result<String> {
    let name = field.word()?;
    if name.strip_suffix('*').unwrap_or(&name).contains(['*', '?']) {
        let what = format!("`{name}` cannot be granted: `*` is allowed only at the end of a name");
        Err(field.reject(what, "Write the names one by one, or the beginning that they have in common."))
    } else {
        Ok(name)
    }
}

/// All caps.
pub(super) fn caps(field: &Field<'_>) -> Result<Caps> {
    field.object(|object| {
        let session = object.defaulted("session", Cap::default(), cap);
        let day = object.defaulted("day", Cap::default(), cap);
        let extensions =
            object.defaulted("extensions", Vec::new(), |field| field.entries(|_, each| cap(each)));
        Ok(Caps {
            session: session?,
            day: day?,
            extensions: extensions?.into_iter().map(|(id, cap)| (id.into(), cap)).collect(),
        })
    })
}

fn cap(field: &Field<'_>) -> Result<Cap> {
    field.object(|object| {
        object.advise("time", "Did you mean `time_ms`?");
        object.advise("cost", "Did you mean `dollars`?");
        let tokens = object.optional("tokens", |field| field.whole(0..=MAX_EXACT_INTEGER));
        let dollars = object.optional("dollars", dollars);
        let time_ms = object.optional("time_ms", |field| field.whole(0..=MAX_EXACT_INTEGER));
        let tool_calls = object.optional("tool_calls", |field| field.whole(0..=u32::MAX));
        Ok(Cap { tokens: tokens?, dollars: dollars?, time_ms: time_ms?.map(Millis), tool_calls: tool_calls? })
    })
}

/// An amount of money, written in dollars.
pub fn dollars(field: &Field<'_>) -> Result<Dollars> {
    let amount = field.json()?.as_f64().map(Dollars::try_from);
    match amount {
        Some(Ok(dollars)) => Ok(dollars),
        _ => {
            let what = format!("{} is not an amount of money", field.subject());
            Err(field
                .reject(what, format!("Write a number of dollars, such as `{}`.", field.written("2.50"))))
        }
    }
}
