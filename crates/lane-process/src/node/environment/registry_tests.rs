//! Which configuration of `npm` reaches an installer.

use std::ffi::OsString;
use std::fs;

use super::registry::configured;

#[test]
fn the_configuration_of_the_registry_is_passed_on_and_nothing_else() {
    let world = tempfile::tempdir().unwrap();
    let path = |name: &str| world.path().join(name).display().to_string();
    for folder in ["user/certificates", "installer", "prefix/etc", "user/holdfast/environments/one"] {
        fs::create_dir_all(world.path().join(folder)).unwrap();
    }
    fs::write(world.path().join("user/.npmrc"), "//npm.example/:_authToken=t0ken\ncafile=~/certificates\n")
        .unwrap();
    fs::write(world.path().join("prefix/etc/npmrc"), "strict-ssl=true\n").unwrap();
    let variables = [
        ("HOME", path("user")),
        ("npm_config_registry", "http://127.0.0.1:1".to_owned()),
        ("NPM_CONFIG_CACHE", path("user")),
        ("npm_config_ignore_scripts", "false".to_owned()),
        ("npm_config_script_shell", "/bin/sh".to_owned()),
        ("NODE_OPTIONS", "--require=/tmp/x.js".to_owned()),
        ("HTTPS_PROXY", "http://proxy.example:3128".to_owned()),
        ("SOME_API_KEY", "sk-1".to_owned()),
    ];
    let variables = variables.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let closed = world.path().join("user/holdfast/environments/one");
    let installer = world.path().join("installer");
    let prefix = world.path().join("prefix");
    let configured = configured(variables, &installer, &[&closed], Some(&prefix)).unwrap();
    let names: Vec<_> = configured.variables.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["npm_config_registry", "HTTPS_PROXY"]);
    let own = fs::read_to_string(installer.join(".npmrc")).unwrap();
    assert!(own.contains("t0ken") && own.contains(&path("user/certificates")), "{own}");
    assert_eq!(fs::read_to_string(installer.join("global.npmrc")).unwrap(), "strict-ssl=true\n");
    assert_eq!(configured.readable, [world.path().join("user/certificates").canonicalize().unwrap()]);
}
