//! Which configuration of `pip` and `uv` reaches an installer.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use super::registry::configured;
use crate::packages::installer::Configured;

struct World(tempfile::TempDir);

impl World {
    fn new() -> Self {
        let world = Self(tempfile::tempdir().unwrap());
        for folder in ["user", "installer", "wheels", "user/wheels", "user/holdfast/environments/one"] {
            fs::create_dir_all(world.0.path().join(folder)).unwrap();
        }
        world
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn configured(&self, variables: &[(&str, &str)]) -> Configured {
        let user = self.path("user");
        let all = [("HOME", user.as_str())].into_iter().chain(variables.iter().copied());
        let all = all.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let closed = self.path("user/holdfast/environments/one");
        configured(all, &self.0.path().join("installer"), &[Path::new(&closed)]).unwrap()
    }
}

fn names(registry: &Configured) -> Vec<&str> {
    registry.variables.iter().map(|(name, _)| name.as_str()).collect()
}

#[test]
fn variables_of_the_registry_are_passed_on_and_no_others() {
    let world = World::new();
    let registry = world.configured(&[
        ("PIP_INDEX_URL", "https://user:password@index.example/simple"),
        ("UV_INDEX_INTERNAL_PASSWORD", "x"),
        ("https_proxy", "http://proxy.example:3128"),
        ("OPENAI_API_KEY", "sk-1"),
        ("PIP_NO_BINARY", ":all:"),
        ("PIP_TARGET", "/tmp"),
        ("PIP_ONLY_BINARY", ":none:"),
        ("UV_NO_BUILD", "0"),
        ("PYTHONPATH", "/tmp"),
        ("LD_PRELOAD", "/tmp/x.so"),
        ("UV_INDEX_STRATEGY", ""),
    ]);
    assert_eq!(names(&registry), ["PIP_INDEX_URL", "UV_INDEX_INTERNAL_PASSWORD", "https_proxy"]);
}

#[test]
fn configuration_files_are_copied_to_where_the_installer_looks() {
    let world = World::new();
    world.write("user/.config/pip/pip.conf", "[global]\nfind-links = ~/wheels\n  ~other/x a~/b\n");
    world.write("user/.netrc", "machine index.example login a password b\n");
    world.write("elsewhere/uv.toml", "find-links = [\"~/wheels\"]\n");
    let registry = world.configured(&[("UV_CONFIG_FILE", &world.path("elsewhere/uv.toml"))]);
    let text = fs::read_to_string(world.path("installer/.config/pip/pip.conf")).unwrap();
    let wheels = world.path("user/wheels");
    assert_eq!(text, format!("[global]\nfind-links = {wheels}\n  ~other/x a~/b\n"));
    assert!(fs::read_to_string(world.path("installer/.netrc")).unwrap().contains("password b"));
    assert_eq!(
        registry.variables,
        [("UV_CONFIG_FILE".to_owned(), OsString::from(world.path("installer/uv.toml")))]
    );
    let text = fs::read_to_string(world.path("installer/uv.toml")).unwrap();
    assert_eq!(text, format!("find-links = [\"{wheels}\"]\n"));
    assert!(registry.readable.contains(&wheels.into()), "{registry:?}");
    assert!(!Path::new(&world.path("installer/.pip")).exists());
}

#[test]
fn configured_paths_are_readable_unless_they_contain_a_home() {
    let world = World::new();
    let wheels = world.path("wheels");
    let links = format!("https://index.example {} {}", world.path("nowhere"), wheels);
    let registry = world.configured(&[
        ("PIP_FIND_LINKS", &links),
        ("PIP_EXTRA_INDEX_URL", &format!("file://{}", world.path("user/wheels"))),
        ("PIP_CERT", "/"),
        ("SSL_CERT_DIR", &format!("{}:{}", world.path(""), world.path("user"))),
        ("UV_FIND_LINKS", &world.path("user/holdfast")),
    ]);
    let inside: Vec<_> = registry.readable.iter().filter(|path| path.starts_with(world.0.path())).collect();
    assert_eq!(inside, [Path::new(&wheels), Path::new(&world.path("user/wheels"))], "{registry:?}");
    assert!(!registry.readable.iter().any(|path| path == Path::new("/")), "{registry:?}");
}
