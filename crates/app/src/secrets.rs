//! The secret stores of a home.

use std::ffi::OsString;

use holdfast_contract::problem::Problem;
use holdfast_home::{Home, SecretPlace, Settings};
use holdfast_model::provider::usual_key;
use holdfast_runtime::secrets::Secrets;
use holdfast_secrets::{
    Chain, Digester, EncryptedFile, EnvironmentStore as VariableStore, Keyring, PASSPHRASE_VARIABLE,
    SecretName, SecretStore, SecretStoreState, SecretString, StoreKind,
};

/// The secrets of a home: its variables, its encrypted file, and the keyring where the settings name it. The key of their digests is
/// created if it is missing.
pub fn secrets(
    home: &Home,
    settings: &Settings,
    environment: fn(&str) -> Option<OsString>,
) -> Result<Secrets, Problem> {
    let keys = settings.models.named.values().filter_map(|model| {
        model.api_key_env.clone().or_else(|| usual_key(&model.provider).map(str::to_owned))
    });
    let served = settings.serve.iter().flat_map(|serve| serve.callers.values());
    let tokens = settings.remotes.values().map(|remote| &remote.token).chain(served).cloned();
    let of_servers = settings.mcp.servers.values().flat_map(|server| server.secrets());
    let of_packs = settings.packs.iter().flat_map(|pack| pack.granted_secrets());
    let all = keys.chain(tokens).chain(of_servers).chain(of_packs);
    let also = all.filter_map(|name| SecretName::global(&name).ok()).collect();
    Secrets::new(secret_chain(home, settings, environment)?, Digester::open(home.root())?, also)
}

/// The stores of a home's secrets. Nothing is written until a secret is set.
pub fn secret_chain(
    home: &Home,
    settings: &Settings,
    environment: fn(&str) -> Option<OsString>,
) -> Result<Chain, Problem> {
    let passphrase = environment(PASSPHRASE_VARIABLE).and_then(|text| text.into_string().ok());
    let mut stores: Vec<Box<dyn SecretStore>> = vec![
        Box::new(VariableStore::new(home.root(), environment)),
        Box::new(EncryptedFile::new(home.root(), passphrase.map(SecretString::from))),
    ];
    let writes_to = match settings.secrets.store {
        SecretPlace::File => StoreKind::File,
        SecretPlace::Environment => StoreKind::Environment,
        SecretPlace::Keyring => {
            stores.push(Box::new(Keyring::new(home.root())));
            StoreKind::Keyring
        }
    };
    Chain::new(stores, writes_to)
}

/// The state of the keyring, for `doctor`: the number of secrets in it if the settings select it as the secret store.
pub fn keyring(home: &Home, settings: &Settings) -> Result<String, Problem> {
    match settings.secrets.store {
        SecretPlace::Keyring => {
            let description = Keyring::new(home.root()).describe();
            match description.state {
                SecretStoreState::Ready { secrets } => {
                    Ok(format!("{secrets} secrets in {}", description.place))
                }
                SecretStoreState::Unavailable(problem) => Err(problem),
            }
        }
        _ if Keyring::SUPPORTED => {
            Ok("not used: `secrets.store` in the settings names another place".to_owned())
        }
        _ => Ok("not used, and this build has no keyring support (`--features keyring`)".to_owned()),
    }
}
