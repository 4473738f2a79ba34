// Package config reads the server's one configuration file: versioned TOML
// whose every unknown key and bad value is an error that says where it stands.
// The file defaults.toml beside this one documents all keys and is where the
// defaults come from.
package config

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"os"

	"github.com/exec-server/exec-server/internal/units"
)

//go:embed defaults.toml
var defaults []byte

// The types of values that are written with units.
type (
	Size     = units.Size
	Duration = units.Duration
)

// Version is the only version of the file's format so far.
const Version = 1

// NoListener is the URL of a listener that is not there.
const NoListener = "none"

// DefaultProfile is the name of the profile that always exists.
const DefaultProfile = "default"

// Config is the whole file. defaults.toml says what each key means.
type Config struct {
	Version        int                `toml:"version"`
	Root           string             `toml:"root"`
	Runtime        string             `toml:"runtime"`
	DefaultProfile string             `toml:"default_profile"`
	Log            Log                `toml:"log"`
	Listen         Listen             `toml:"listen"`
	Containerd     Containerd         `toml:"containerd"`
	Session        Session            `toml:"session"`
	Limits         Limits             `toml:"limits"`
	Network        Network            `toml:"network"`
	Metrics        Metrics            `toml:"metrics"`
	Profiles       map[string]Profile `toml:"profile"`

	Remote       Remote                 `toml:"remote"`
	Environments map[string]Environment `toml:"environment"`
}

// Log says what is logged and how.
type Log struct {
	Level  string `toml:"level"`
	Format string `toml:"format"`
}

// Listen is the direct listener.
type Listen struct {
	URL                string `toml:"url"`
	EnvironmentID      string `toml:"environment_id"`
	Scope              string `toml:"scope"`
	ConcurrentRequests int    `toml:"concurrent_requests"`
	Auth               Auth   `toml:"auth"`
}

// Auth says how harnesses authenticate themselves to the listener.
type Auth struct {
	Mode             string   `toml:"mode"`
	TokenFile        string   `toml:"token_file"`
	TokenSHA256      string   `toml:"token_sha256"`
	SharedSecretFile string   `toml:"shared_secret_file"`
	Issuer           string   `toml:"issuer"`
	Audience         string   `toml:"audience"`
	MaxClockSkew     Duration `toml:"max_clock_skew"`
}

// Containerd says which containerd and runc to use; "" is the embedded
// containerd and the runc found in PATH.
type Containerd struct {
	Address string `toml:"address"`
	Runc    string `toml:"runc"`
}

// Session is what a session keeps, and for how long.
type Session struct {
	Detach      Duration `toml:"detach"`
	KeepClosed  Duration `toml:"keep_closed"`
	OutputBytes Size     `toml:"output_bytes"`
}

// Limits bound the whole server.
type Limits struct {
	Environments int `toml:"environments"`
}

// Metrics is where the counters of environments are served.
type Metrics struct {
	URL string `toml:"url"`
}

// Profile is what a sandbox is made from.
type Profile struct {
	Image   string            `toml:"image"`
	User    string            `toml:"user"`
	Cwd     string            `toml:"cwd"`
	Env     map[string]string `toml:"env"`
	CPUs    float64           `toml:"cpus"`
	Memory  Size              `toml:"memory"`
	Pids    int64             `toml:"pids"`
	ShmSize Size              `toml:"shm_size"`
	Network ProfileNetwork    `toml:"network"`
}

// Default is the configuration of a server without a file.
func Default() Config {
	var c Config
	if err := decode(defaults, &c); err != nil {
		panic("config: the embedded defaults.toml: " + err.Error())
	}
	return c
}

// Load reads and checks the file at path. Keys that it leaves out keep their
// defaults, in every profile those of the built-in profile.default. Errors
// are one line, "path:line:column: key: what is wrong" where the place is
// known.
func Load(path string) (Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("read the configuration: %w", err)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	c, err := parse(data)
	if err != nil {
		return Config{}, fmt.Errorf("%s:%w", path, err)
	}
	return c, nil
}

// WriteDefaults prints a file that documents every key and sets each to its
// default.
func WriteDefaults(w io.Writer) error {
	_, err := w.Write(defaults)
	return err
}
