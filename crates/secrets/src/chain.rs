//! Several stores as one: searched in order, written to one, and each result names its store.

use std::collections::BTreeSet;

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::problem::{Code, Problem};
use secrecy::SecretString;

use crate::name::SecretName;
use crate::redact::Redactor;
use crate::store::{Description, SecretStore, StoreKind};

/// Stores in search order.
#[derive(Debug)]
pub struct Chain {
    stores: Vec<Box<dyn SecretStore>>,
    writes_to: StoreKind,
}

/// A secret, and where it was.
#[derive(Clone, Debug)]
pub struct FoundSecret {
    /// The name under which it is kept: the extension's own, or the one for all.
    pub name: SecretName,
    /// The store.
    pub from: StoreKind,
    /// The value.
    pub value: SecretString,
}

/// Where a secret was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredSecret {
    /// The store.
    pub to: StoreKind,
    /// A store earlier in the search order with another secret of this name, which takes precedence.
    pub hidden_by: Option<StoreKind>,
}

/// What became of a secret that was to be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovedSecret {
    /// The stores that it was removed from.
    pub from: Vec<StoreKind>,
    /// The store that still has a secret of this name: a variable of the process cannot be removed.
    pub left_in: Option<StoreKind>,
}

impl Chain {
    /// These stores in this order. Secrets are written to the store of the given kind.
    pub fn new(stores: Vec<Box<dyn SecretStore>>, writes_to: StoreKind) -> Result<Self, Problem> {
        if !stores.iter().any(|store| store.kind() == writes_to) {
            let what = format!("secrets are to be written to the {writes_to}, which is not among the stores");
            return Err(Problem::new(Code::SecretReadOnly, what));
        }
        Ok(Self { stores, writes_to })
    }

    /// The secret of this name. If it is not found and a store could not be read, the result is that store's error, because the secret
    /// may be in it.
    pub fn find(&self, name: &SecretName) -> Result<Option<FoundSecret>, Problem> {
        let mut unasked = None;
        for store in &self.stores {
            match store.get(name) {
                Ok(Some(value)) => {
                    return Ok(Some(FoundSecret { name: name.clone(), from: store.kind(), value }));
                }
                Ok(None) => {}
                Err(problem) => unasked = unasked.or(Some(problem)),
            }
        }
        unasked.map_or(Ok(None), Err)
    }

    /// The secret that an extension means by a name: its own, wherever that is, or else the one for all. It cannot name another's.
    pub fn find_for(&self, extension: &ExtensionId, name: &str) -> Result<Option<FoundSecret>, Problem> {
        match self.find(&SecretName::own(extension, name)?)? {
            Some(found) => Ok(Some(found)),
            None => self.find(&SecretName::global(name)?),
        }
    }

    /// Sets a secret in the store that is written to. An empty value is rejected, because it means "not set".
    pub fn set(&self, name: &SecretName, value: &SecretString) -> Result<StoredSecret, Problem> {
        use secrecy::ExposeSecret;
        if value.expose_secret().is_empty() {
            let what = format!("{name} would be empty");
            return Err(Problem::new(Code::SecretReadOnly, what).help("Give it a value, or remove it."));
        }
        self.writer()?.set(name, value)?;
        let earlier = self.stores.iter().take_while(|store| store.kind() != self.writes_to);
        let hidden_by =
            earlier.filter(|store| matches!(store.get(name), Ok(Some(_)))).map(|store| store.kind()).next();
        Ok(StoredSecret { to: self.writes_to, hidden_by })
    }

    /// Removes a secret from the store that is written to, and says whether it was there.
    pub fn remove(&self, name: &SecretName) -> Result<bool, Problem> {
        self.writer()?.remove(name)
    }

    /// Removes a secret from every store that has it.
    pub fn remove_everywhere(&self, name: &SecretName) -> Result<RemovedSecret, Problem> {
        let mut from = Vec::new();
        for store in &self.stores {
            if store.remove(name)? {
                from.push(store.kind());
            }
        }
        Ok(RemovedSecret { from, left_in: self.find(name)?.map(|found| found.from) })
    }

    /// All names, each with its store.
    pub fn names(&self) -> Result<Vec<(SecretName, StoreKind)>, Problem> {
        let mut known = BTreeSet::new();
        let mut names = Vec::new();
        for store in &self.stores {
            let fresh = store.names()?.into_iter().filter(|name| known.insert(name.clone()));
            names.extend(fresh.map(|name| (name, store.kind())));
        }
        names.sort();
        Ok(names)
    }

    /// The status of each store.
    pub fn describe(&self) -> Vec<Description> {
        self.stores.iter().map(|store| store.describe()).collect()
    }

    /// Redacts every value in every store, and the values of the names that are given: a process's variables are in no list of names.
    pub fn redactor(&self, also: impl IntoIterator<Item = SecretName>) -> Result<Redactor, Problem> {
        let mut secrets = Vec::new();
        let names: BTreeSet<_> = self.names()?.into_iter().map(|(name, _)| name).chain(also).collect();
        for name in names {
            for store in &self.stores {
                secrets.extend(store.get(&name)?.map(|value| (name.clone(), value)));
            }
        }
        Ok(Redactor::new(secrets))
    }

    fn writer(&self) -> Result<&dyn SecretStore, Problem> {
        let writer = self.stores.iter().find(|store| store.kind() == self.writes_to);
        writer
            .map(|store| &**store)
            .ok_or_else(|| Problem::new(Code::SecretReadOnly, "no store takes secrets"))
    }
}
