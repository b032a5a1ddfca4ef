//! Answers about secrets.

use holdfast_contract::problem::Problem;
use holdfast_runtime::secrets::{ListedSecret, SecretName, SecretString, StoreKind};
use serde_json::Value;

use super::{Connection, value};
use crate::protocol::{
    NoParams, SecretInfo, SecretMethod, SecretRemove, SecretRemoved, SecretSet, SecretStored,
};

impl Connection {
    pub(super) async fn answer_secrets(&self, method: SecretMethod) -> Result<Value, Problem> {
        let runtime = &self.owner.runtime;
        match method {
            SecretMethod::List(NoParams {}) => {
                let secrets: Vec<SecretInfo> = runtime.secrets().await?.into_iter().map(info).collect();
                value(&secrets)
            }
            SecretMethod::Set(SecretSet { name, value: text }) => {
                let stored = runtime.set_secret(secret_name(&name)?, SecretString::from(text)).await?;
                let hidden_by = stored.hidden_by.map(as_text);
                value(&SecretStored { name, store: as_text(stored.to), hidden_by })
            }
            SecretMethod::Remove(SecretRemove { name }) => {
                let removed = runtime.remove_secret(secret_name(&name)?).await?;
                let stores = removed.from.into_iter().map(as_text).collect();
                value(&SecretRemoved { name, stores, left_in: removed.left_in.map(as_text) })
            }
        }
    }
}

fn secret_name(name: &str) -> Result<SecretName, Problem> {
    name.parse()
}

fn as_text(store: StoreKind) -> String {
    store.as_str().to_owned()
}

fn info(ListedSecret { name, store, place }: ListedSecret) -> SecretInfo {
    SecretInfo { name: name.to_string(), store: as_text(store), place }
}
