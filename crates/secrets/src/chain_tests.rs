//! Several stores as one.

use std::fs;

use holdfast_contract::problem::Code;
use tempfile::TempDir;

use crate::testing::{encrypted, got, name, nothing, put, secret, set_mode};
use crate::{Chain, EnvironmentStore, ExposeSecret, RemovedSecret, StoreKind, StoredSecret};

fn chain(home: &TempDir) -> Chain {
    let environment = EnvironmentStore::new(home.path(), nothing);
    Chain::new(vec![Box::new(environment), Box::new(encrypted(home.path()))], StoreKind::File).unwrap()
}

fn found(chain: &Chain, extension: &str, name: &str) -> Option<(String, StoreKind, String)> {
    let found = chain.find_for(&extension.into(), name).unwrap()?;
    Some((found.name.to_string(), found.from, found.value.expose_secret().to_owned()))
}

#[test]
fn an_extensions_own_secret_comes_before_the_one_for_all() {
    let home = tempfile::tempdir().unwrap();
    let (environment, file) = (EnvironmentStore::new(home.path(), nothing), encrypted(home.path()));
    put(&environment, "TOKEN", "for all");
    put(&file, "telegram.TOKEN", "its own");
    let chain = chain(&home);
    let own = ("telegram.TOKEN".to_owned(), StoreKind::File, "its own".to_owned());
    let global = ("TOKEN".to_owned(), StoreKind::Environment, "for all".to_owned());
    assert_eq!(found(&chain, "telegram", "TOKEN"), Some(own));
    assert_eq!(found(&chain, "discourse", "TOKEN"), Some(global));
    assert_eq!(found(&chain, "telegram", "OTHER"), None);
}

#[test]
fn the_first_store_that_has_it_counts_and_writing_says_when_that_is_another() {
    let home = tempfile::tempdir().unwrap();
    let chain = chain(&home);
    assert_eq!(
        chain.set(&name("TOKEN"), &secret("file")).unwrap(),
        StoredSecret { to: StoreKind::File, hidden_by: None }
    );
    put(&EnvironmentStore::new(home.path(), nothing), "TOKEN", "environment");
    let kept = chain.set(&name("TOKEN"), &secret("newer")).unwrap();
    assert_eq!(kept, StoredSecret { to: StoreKind::File, hidden_by: Some(StoreKind::Environment) });
    assert_eq!(found(&chain, "any", "TOKEN").unwrap().2, "environment");
    assert_eq!(chain.names().unwrap(), [(name("TOKEN"), StoreKind::Environment)]);
    assert!(chain.remove(&name("TOKEN")).unwrap());
    assert_eq!(got(&encrypted(home.path()), "TOKEN"), None);
    assert_eq!(found(&chain, "any", "TOKEN").unwrap().2, "environment", "only the written store is changed");
}

#[test]
fn a_store_that_cannot_be_asked_is_no_store_without_the_secret() {
    let home = tempfile::tempdir().unwrap();
    let chain = chain(&home);
    chain.set(&name("TOKEN"), &secret("file")).unwrap();
    put(&EnvironmentStore::new(home.path(), nothing), "OTHER", "environment");
    set_mode(&home.path().join("secrets.key"), 0o644);
    let chain = self::chain(&home);
    assert_eq!(chain.find(&name("TOKEN")).unwrap_err().code, Code::SecretsExposed);
    assert_eq!(chain.find(&name("MISSING")).unwrap_err().code, Code::SecretsExposed);
    assert_eq!(chain.find(&name("OTHER")).unwrap().unwrap().from, StoreKind::Environment);
    assert!(chain.names().is_err() && chain.redactor([]).is_err(), "what is not known cannot be hidden");
    set_mode(&home.path().join("secrets.key"), 0o600);
    fs::write(home.path().join("secrets.age"), "").unwrap();
    assert_eq!(chain.describe().len(), 2);
}

#[test]
fn writing_goes_to_a_store_that_is_there() {
    let home = tempfile::tempdir().unwrap();
    let stores = || vec![Box::new(encrypted(home.path())) as Box<dyn crate::SecretStore>];
    assert_eq!(Chain::new(stores(), StoreKind::Keyring).unwrap_err().code, Code::SecretReadOnly);
    let chain = Chain::new(stores(), StoreKind::File).unwrap();
    assert_eq!(chain.set(&name("TOKEN"), &secret("")).unwrap_err().code, Code::SecretReadOnly);
}

#[test]
fn the_redactor_of_a_chain_knows_every_store_and_the_names_that_are_given() {
    let home = tempfile::tempdir().unwrap();
    put(&EnvironmentStore::new(home.path(), nothing), "TOKEN", "from-the-file");
    put(&encrypted(home.path()), "TOKEN", "hidden-below-it");
    let process = |name: &str| (name == "MODEL_KEY").then(|| "sk-process".into());
    let environment = EnvironmentStore::new(home.path(), process);
    let chain =
        Chain::new(vec![Box::new(environment), Box::new(encrypted(home.path()))], StoreKind::File).unwrap();
    let text = "from-the-file hidden-below-it sk-process";
    assert_eq!(
        chain.redactor([name("MODEL_KEY"), name("UNSET")]).unwrap().redact(text),
        "[secret TOKEN] [secret TOKEN] [secret MODEL_KEY]"
    );
}

#[test]
fn a_secret_is_removed_from_every_store_but_not_from_the_process() {
    let home = tempfile::tempdir().unwrap();
    let stores = (EnvironmentStore::new(home.path(), nothing), encrypted(home.path()));
    put(&stores.0, "TOKEN", "one");
    put(&stores.1, "TOKEN", "two");
    let from = vec![StoreKind::Environment, StoreKind::File];
    let removed = chain(&home).remove_everywhere(&name("TOKEN")).unwrap();
    assert_eq!(removed, RemovedSecret { from, left_in: None });
    assert!(chain(&home).names().unwrap().is_empty());

    let environment = EnvironmentStore::new(home.path(), |_: &str| Some("variable".into()));
    let stores: Vec<Box<dyn crate::SecretStore>> =
        vec![Box::new(environment), Box::new(encrypted(home.path()))];
    let chain = Chain::new(stores, StoreKind::File).unwrap();
    let removed = chain.remove_everywhere(&name("TOKEN")).unwrap();
    assert_eq!(removed, RemovedSecret { from: Vec::new(), left_in: Some(StoreKind::Environment) });
}
