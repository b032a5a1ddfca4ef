# Sourced by `setup` and `test`: versions of the tools, where they are, and how they are installed.

CARGO_DENY=0.20.2
CARGO_NEXTEST=0.9.143
AIMOCK=1.43.0
OPENAI_AGENTS=0.24.0
COMPONENTIZE_PY=0.25.1
COMPONENTIZE_QJS=0.4.5
ZIG=0.17.0
MCP_NODE_SERVERS=2026.8.31
# Later versions need node 22.
MCP_CONFORMANCE=0.1.13
MCP_SERVER_TIME=2026.10.19
MCP_SERVER_GIT=2026.10.19
MCP_SERVER_FETCH=2026.10.24
UV=0.13.8

HOLDFAST_TOOLS="${HOLDFAST_TOOLS:-${CARGO_TARGET_DIR:-target}/tools}"
[[ "$HOLDFAST_TOOLS" == /* ]] || HOLDFAST_TOOLS="$PWD/$HOLDFAST_TOOLS"
export HOLDFAST_TOOLS
export PATH="$HOLDFAST_TOOLS/bin:$PATH"

# Answers as model providers do; a package for node, in a folder of its own.
export HOLDFAST_AIMOCK="$HOLDFAST_TOOLS/aimock/node_modules/@copilotkit/aimock"

# The package that tools in Python classes are usually made with, and what it needs, as wheels.
export HOLDFAST_WHEELS="$HOLDFAST_TOOLS/wheels"

# MCP servers as their authors publish them.
MCP_FOLDER="$HOLDFAST_TOOLS/mcp"
# The other installer of Python's packages. Not on the PATH, where the program would take it for its own work.
export HOLDFAST_UV="$HOLDFAST_TOOLS/uv/bin/uv"

QJS_FOLDER="$HOLDFAST_TOOLS/componentize-qjs"

# A cargo for components, where the ordinary one cannot have the target.
if [[ -x "$HOLDFAST_TOOLS/bin/holdfast-cargo" ]]; then export HOLDFAST_CARGO="$HOLDFAST_TOOLS/bin/holdfast-cargo"; fi

has() {
    command -v "$1" >/dev/null 2>&1
}

install_tool() { # name version [cargo install's own options]
    echo "setup: building $1 $2, which takes some minutes once"
    # Outside the workspace, so that its lockfile and settings play no part. It runs for seconds, and is built for minutes.
    (cd / && CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 cargo install --locked --quiet --root "$HOLDFAST_TOOLS" --version "$2" "${@:3}" "$1")
}

install_package() { # name …
    if has apt-get && [[ "$(id -u)" == 0 ]]; then
        echo "setup: installing $*"
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
    else
        echo "setup: $* is missing; install it with your system's package manager" >&2
        exit 1
    fi
}

has_node_package() { # folder version
    [[ "$(node --print 'require(process.argv[1] + "/package.json").version' "$1" 2>/dev/null)" == "$2" ]]
}

install_node_package() { # folder package@version …, all that the folder is to have
    if ! has npm || ! node --eval 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 15) ? 0 : 1)'; then
        echo "setup: node 20.15 or later with npm is missing; install it with your system's package manager or from nodejs.org" >&2
        exit 1
    fi
    echo "setup: installing ${*:2}"
    npm install --prefix "$1" --no-save --no-audit --no-fund --ignore-scripts --loglevel=error "${@:2}" >/dev/null
}

link_tool() { # file name
    mkdir -p "$HOLDFAST_TOOLS/bin" && ln -sfn "$1" "$HOLDFAST_TOOLS/bin/$2"
}

need_python() {
    if ! has python3 || ! python3 -c 'import sys, pip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
        echo "setup: Python 3.10 or later with pip is missing; install it with your system's package manager" >&2
        exit 1
    fi
}

install_python_package() { # folder package version
    need_python
    echo "setup: installing $2 $3"
    rm -rf "$1" && python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target "$1" "$2==$3"
}

install_mcp_servers() {
    local scope=node_modules/@modelcontextprotocol package missing=no
    for package in everything filesystem memory; do
        has_node_package "$MCP_FOLDER/node/$scope/server-$package" "$MCP_NODE_SERVERS" || missing=yes
    done
    [[ "$missing" == no ]] ||
        install_node_package "$MCP_FOLDER/node" @modelcontextprotocol/server-{everything,filesystem,memory}@"$MCP_NODE_SERVERS"
    has_node_package "$MCP_FOLDER/conformance/$scope/conformance" "$MCP_CONFORMANCE" ||
        install_node_package "$MCP_FOLDER/conformance" "@modelcontextprotocol/conformance@$MCP_CONFORMANCE"
    if ! ls -d "$MCP_FOLDER/python/mcp_server_time-$MCP_SERVER_TIME.dist-info" "$MCP_FOLDER/python/mcp_server_git-$MCP_SERVER_GIT.dist-info" "$MCP_FOLDER/python/mcp_server_fetch-$MCP_SERVER_FETCH.dist-info" >/dev/null 2>&1; then
        need_python
        echo "setup: installing MCP servers in Python"
        rm -rf "$MCP_FOLDER/python"
        python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target "$MCP_FOLDER/python" "mcp-server-time==$MCP_SERVER_TIME" "mcp-server-git==$MCP_SERVER_GIT" "mcp-server-fetch==$MCP_SERVER_FETCH"
    fi
}

download_wheels() { # folder package version
    need_python
    echo "setup: downloading $2 $3"
    rm -rf "$1" && python3 -m pip download --quiet --disable-pip-version-check --only-binary :all: --dest "$1" "$2==$3"
}

install_python_program() { # name version
    local folder="$HOLDFAST_TOOLS/$1"
    install_python_package "$folder" "$1" "$2"
    # pip's own launcher looks for the package where ordinary packages are.
    mkdir -p "$HOLDFAST_TOOLS/bin"
    printf '#!/bin/sh\nPYTHONPATH=%q exec %q %q "$@"\n' "$folder" "$(python3 -c 'import sys; print(sys.executable)')" "$folder/bin/$1" >"$HOLDFAST_TOOLS/bin/$1"
    chmod +x "$HOLDFAST_TOOLS/bin/$1"
}

install_zig() {
    install_python_package "$HOLDFAST_TOOLS/zig" ziglang "$ZIG"
    link_tool "$HOLDFAST_TOOLS/zig/ziglang/zig" zig
}

# Whether a cargo can build the standard library's part of a component.
makes_wasm() { # cargo
    has "$1" || return 1
    local folder status=0
    folder="$(mktemp -d)"
    mkdir "$folder/src"
    printf '[package]\nname = "probe"\nversion = "0.1.0"\nedition = "2024"\n[lib]\ncrate-type = ["cdylib"]\n[workspace]\n' >"$folder/Cargo.toml"
    echo 'pub fn probe() -> String { String::new() }' >"$folder/src/lib.rs"
    CARGO_TARGET_DIR="$folder/target" "$1" build --quiet --target wasm32-unknown-unknown --manifest-path "$folder/Cargo.toml" >/dev/null 2>&1 || status=1
    rm -rf "$folder"
    return "$status"
}

install_rust_wasm() {
    echo "setup: adding Rust's target for components"
    if has rustup && timeout 120 rustup target add wasm32-unknown-unknown >/dev/null 2>&1 && makes_wasm cargo; then return; fi
    echo "setup: rustup cannot add it; taking the compiler and the standard library's source from the system's packages"
    install_package rustc-web rust-web-src
    local compiler linker
    compiler="$(dpkg -L rustc-web | grep -E '/bin/rustc[^/]*$' | head -n 1)"
    linker="$(find "$(rustc --print sysroot)" -name rust-lld -type f | head -n 1)"
    if [[ -z "$compiler" || -z "$linker" ]]; then
        echo "setup: no compiler or linker for components was found; install rustup and run: rustup target add wasm32-unknown-unknown" >&2
        exit 1
    fi
    mkdir -p "$HOLDFAST_TOOLS/bin"
    # The standard library is built along, from source, which only a compiler that takes unstable options does.
    cat >"$HOLDFAST_TOOLS/bin/holdfast-cargo" <<END
#!/bin/sh
export RUSTC=$compiler RUSTC_BOOTSTRAP=1 CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=$linker
exec cargo "\$@" -Zbuild-std=std,panic_abort
END
    chmod +x "$HOLDFAST_TOOLS/bin/holdfast-cargo"
    if ! makes_wasm "$HOLDFAST_TOOLS/bin/holdfast-cargo"; then
        echo "setup: $HOLDFAST_TOOLS/bin/holdfast-cargo cannot build components; install rustup and run: rustup target add wasm32-unknown-unknown" >&2
        exit 1
    fi
}
