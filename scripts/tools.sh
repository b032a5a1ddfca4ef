# Sourced by `setup` and `test`: versions of the tools, where they are, and how they are installed.

CARGO_DENY=0.20.2
CARGO_NEXTEST=0.9.143
AIMOCK=1.43.0

HOLDFAST_TOOLS="${HOLDFAST_TOOLS:-${CARGO_TARGET_DIR:-target}/tools}"
[[ "$HOLDFAST_TOOLS" == /* ]] || HOLDFAST_TOOLS="$PWD/$HOLDFAST_TOOLS"
export HOLDFAST_TOOLS
export PATH="$HOLDFAST_TOOLS/bin:$PATH"

# Answers as model providers do; a package for node, in a folder of its own.
export HOLDFAST_AIMOCK="$HOLDFAST_TOOLS/aimock/node_modules/@copilotkit/aimock"

has() {
    command -v "$1" >/dev/null 2>&1
}

install_tool() { # name version [cargo install's own options]
    echo "setup: building $1 $2, which takes some minutes once"
    # Outside the workspace, so that its lockfile and settings play no part.
    (cd / && cargo install --locked --quiet --root "$HOLDFAST_TOOLS" --version "$2" "${@:3}" "$1")
}

install_package() { # name
    if has apt-get && [[ "$(id -u)" == 0 ]]; then
        echo "setup: installing $1"
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$1" >/dev/null
    else
        echo "setup: $1 is missing; install it with your system's package manager" >&2
        exit 1
    fi
}

install_node_package() { # folder package version
    if ! has npm || ! node --eval 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 15) ? 0 : 1)'; then
        echo "setup: node 20.15 or later with npm is missing; install it with your system's package manager or from nodejs.org" >&2
        exit 1
    fi
    echo "setup: installing $2 $3"
    npm install --prefix "$1" --no-save --no-audit --no-fund --ignore-scripts --loglevel=error "$2@$3" >/dev/null
}
