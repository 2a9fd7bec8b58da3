package confine

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ToolchainSpec is what builds and tests need beside their workspace, and what no command needs: the common part of
// every [Spec].
type ToolchainSpec struct {
	Writable []string // the workspace and private directories in the scratch directory
	Hidden   []string // credentials, histories and browser profiles below the home directory
	Caches   []Cache  // the user's build and package caches, written to aside
	Env      []string // the allowed part of the environment, with what points into the scratch directory
	Withheld []string // names of the variables that were left out, sorted
}

// Defaults prepares scratch for a command in workspace and says what that command gets. scratch is a directory of the
// run's own, kept between its commands, so that nothing is compiled twice; of it only "tmp" and "home" are visible to
// the command. environ is the environment to choose from, usually os.Environ().
func Defaults(workspace, scratch, home string, environ []string) (ToolchainSpec, error) {
	t := ToolchainSpec{Writable: []string{workspace}}
	set := map[string]string{}
	for _, kv := range environ {
		name, v, _ := strings.Cut(kv, "=")
		switch {
		case name == "":
		case allowedName(name) && !carriesLogin(v):
			set[name] = v
		default:
			t.Withheld = append(t.Withheld, name)
		}
	}
	slices.Sort(t.Withheld)
	set["HOME"] = home
	set["TMPDIR"] = filepath.Join(scratch, "tmp")
	// Nobody is there to answer, and nothing but plain text is wanted.
	for _, kv := range [][2]string{{"TERM", "dumb"}, {"PAGER", "cat"}, {"GIT_PAGER", "cat"}, {"GIT_EDITOR", "true"}, {"EDITOR", "true"}, {"GIT_TERMINAL_PROMPT", "0"}, {"NO_COLOR", "1"}} {
		set[kv[0]] = kv[1]
	}
	for _, d := range []string{"tmp", "home"} {
		p := filepath.Join(scratch, d)
		if err := os.MkdirAll(p, 0o700); err != nil {
			return t, fmt.Errorf("the command's scratch directory: %w", err)
		}
		t.Writable = append(t.Writable, p)
	}
	for _, c := range caches(home, set) {
		if st, err := os.Stat(c.path); err == nil && st.IsDir() {
			t.Caches = append(t.Caches, Cache{Path: c.path, Layer: filepath.Join(scratch, "layers", c.name)})
		} else if c.env != "" {
			// The user has none to read through to: a private one in its place.
			set[c.env] = filepath.Join(scratch, "home", c.name)
		}
	}
	for k, v := range set {
		t.Env = append(t.Env, k+"="+v)
	}
	slices.Sort(t.Env)
	for _, h := range secrets {
		t.Hidden = append(t.Hidden, filepath.Join(home, h))
	}
	return t, nil
}

// Apply adds the toolchain's part to s.
func (t ToolchainSpec) Apply(s *Spec) {
	s.Writable = append(s.Writable, t.Writable...)
	s.Hidden = append(s.Hidden, t.Hidden...)
	s.Caches = append(s.Caches, t.Caches...)
	s.Env = append(s.Env, t.Env...)
}

// Reveal takes paths out of what is hidden: for a command that was approved to use them, such as a push over ssh.
func (t *ToolchainSpec) Reveal(paths ...string) {
	t.Hidden = slices.DeleteFunc(t.Hidden, func(h string) bool { return slices.Contains(paths, h) })
}

type cachePlace struct {
	name, path string
	env        string // moves the cache where the user has none; "" if the tool can do without
}

// caches lists where tools keep what they can make or fetch again. Sharing the user's contents spares a fresh run
// from compiling its standard library; what it writes itself never reaches them.
func caches(home string, env map[string]string) []cachePlace {
	or := func(name, def string) string {
		if v := env[name]; filepath.IsAbs(v) {
			return filepath.Clean(v)
		}
		return def
	}
	in := func(parts ...string) string { return filepath.Join(append([]string{home}, parts...)...) }
	xdg := or("XDG_CACHE_HOME", in(".cache"))
	gopath := in("go")
	if first, _, _ := strings.Cut(env["GOPATH"], string(filepath.ListSeparator)); filepath.IsAbs(first) {
		gopath = first
	}
	cargo := or("CARGO_HOME", in(".cargo"))
	all := []cachePlace{
		{"xdg", xdg, "XDG_CACHE_HOME"},
		{"go-build", or("GOCACHE", filepath.Join(xdg, "go-build")), "GOCACHE"},
		{"go-mod", or("GOMODCACHE", filepath.Join(gopath, "pkg", "mod")), "GOMODCACHE"},
		{"npm", or("npm_config_cache", in(".npm")), "npm_config_cache"},
		{"yarn", in(".yarn"), ""},
		{"pnpm", in(".local", "share", "pnpm", "store"), ""},
		{"bun", in(".bun", "install", "cache"), ""},
		{"pip", or("PIP_CACHE_DIR", filepath.Join(xdg, "pip")), "PIP_CACHE_DIR"},
		{"cargo-registry", filepath.Join(cargo, "registry"), ""},
		{"cargo-git", filepath.Join(cargo, "git"), ""},
		{"maven", in(".m2", "repository"), ""},
		{"gradle", or("GRADLE_USER_HOME", in(".gradle")), ""},
		{"nuget", or("NUGET_PACKAGES", in(".nuget", "packages")), ""},
	}
	if _, err := os.Stat(cargo); err != nil {
		all = append(all, cachePlace{"cargo", cargo, "CARGO_HOME"})
	}
	// What lies in another place of the list is covered by that one.
	var out []cachePlace
	for i, c := range all {
		inner := slices.ContainsFunc(all, func(o cachePlace) bool {
			st, err := os.Stat(o.path)
			return o.path != c.path && strings.HasPrefix(c.path, o.path+"/") && err == nil && st.IsDir()
		})
		same := slices.ContainsFunc(all[:i], func(o cachePlace) bool { return o.path == c.path })
		inMoved := strings.HasPrefix(c.path, xdg+"/") && c.env != "" && env[c.env] == "" // follows XDG_CACHE_HOME by itself
		if !inner && !same && !inMoved {
			out = append(out, c)
		}
	}
	return out
}

// secrets are hidden below the home directory: what proves who the user is, and what tells about their life.
var secrets = []string{
	".ssh", ".gnupg", ".netrc", ".git-credentials", ".config/git/credentials", ".password-store", ".local/share/keyrings",
	".aws", ".azure", ".config/gcloud", ".config/gh", ".config/hub", ".config/glab-cli", ".config/op", ".config/rclone",
	".config/doctl", ".config/heroku", ".config/netlify", ".config/configstore", ".fly", ".wrangler", ".s3cfg", ".boto",
	".docker", ".kube", ".config/containers/auth.json", ".terraform.d/credentials.tfrc.json", ".vault-token",
	".npmrc", ".yarnrc.yml", ".pypirc", ".config/pip", ".pip", ".cargo/credentials", ".cargo/credentials.toml",
	".gem/credentials", ".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties", ".nuget/NuGet",
	".pgpass", ".my.cnf", ".databrickscfg", ".snowflake", ".kaggle", ".huggingface", ".cache/huggingface/token",
	".claude", ".claude.json", ".codex", ".gemini", ".config/github-copilot", ".config/openai", ".config/anthropic",
	".bash_history", ".zsh_history", ".local/share/fish/fish_history", ".python_history", ".node_repl_history",
	".psql_history", ".mysql_history", ".sqlite_history", ".viminfo", ".lesshst",
	".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge",
	".config/vivaldi", ".config/opera", "snap/firefox", "snap/chromium", ".var/app",
	".cache/mozilla", ".cache/google-chrome", ".cache/chromium", ".config/Signal", ".config/Slack", ".config/discord",
}

// names of variables that builds and tests go by. What is not listed is withheld.
var allowedNames = strings.Fields(`
PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ SOURCE_DATE_EPOCH XDG_CONFIG_HOME XDG_DATA_HOME XDG_CACHE_HOME XDG_STATE_HOME
GOPATH GOROOT GOBIN GOCACHE GOMODCACHE GOFLAGS GOPROXY GOPRIVATE GONOPROXY GONOSUMDB GOSUMDB GOINSECURE GOTOOLCHAIN GOWORK GOENV
GOOS GOARCH GOAMD64 GOARM GOARM64 GOEXPERIMENT GOMAXPROCS GOMEMLIMIT GOGC GODEBUG
CC CXX CPP AR AS LD NM RANLIB CFLAGS CPPFLAGS CXXFLAGS LDFLAGS LIBS CPATH C_INCLUDE_PATH LIBRARY_PATH LD_LIBRARY_PATH
PKG_CONFIG PKG_CONFIG_PATH PKG_CONFIG_LIBDIR CMAKE_PREFIX_PATH CMAKE_GENERATOR
NVM_DIR NVM_BIN NODE_PATH NODE_OPTIONS NODE_ENV VOLTA_HOME N_PREFIX PNPM_HOME BUN_INSTALL DENO_DIR npm_config_cache npm_config_prefix
PYENV_ROOT PYENV_VERSION VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED
POETRY_HOME PIP_CACHE_DIR UV_CACHE_DIR
RUSTUP_HOME RUSTUP_TOOLCHAIN CARGO_HOME CARGO_TARGET_DIR RUSTFLAGS RUST_BACKTRACE
JAVA_HOME JDK_HOME MAVEN_HOME M2_HOME GRADLE_HOME GRADLE_USER_HOME KOTLIN_HOME ANDROID_HOME ANDROID_SDK_ROOT SDKMAN_DIR
RBENV_ROOT RBENV_VERSION GEM_HOME GEM_PATH RUBYLIB RUBYOPT BUNDLE_PATH ASDF_DIR ASDF_DATA_DIR DOTNET_ROOT NUGET_PACKAGES
NIX_PATH NIX_PROFILES NIX_SSL_CERT_FILE LOCALE_ARCHIVE SSL_CERT_FILE SSL_CERT_DIR
` + MarkerEnv)

var allowedPrefixes = []string{"LC_", "CGO_", "FNM_", "MISE_"}

func allowedName(name string) bool {
	return slices.Contains(allowedNames, name) ||
		slices.ContainsFunc(allowedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// carriesLogin says whether a value holds a URL with a user in it, such as a private proxy's.
func carriesLogin(v string) bool {
	for {
		_, rest, ok := strings.Cut(v, "://")
		if !ok {
			return false
		}
		host, _, _ := strings.Cut(rest, "/")
		if strings.Contains(host, "@") {
			return true
		}
		v = rest
	}
}
