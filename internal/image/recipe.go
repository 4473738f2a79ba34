package image

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/exec-server/exec-server/images"
)

// builderVersion is part of every image's name. It goes up when the builder
// makes something else of the same recipe.
const builderVersion = 1

// Recipe is what an image is built from; images/default.toml says more.
type Recipe struct {
	Version  int      `toml:"version"`
	Base     string   `toml:"name"`
	Suite    string   `toml:"suite"`
	Epoch    int64    `toml:"epoch"`
	Packages []string `toml:"packages"`
	Exclude  []string `toml:"exclude"`
	Keep     []string `toml:"keep"`
	User     User     `toml:"user"`
	Config   Config   `toml:"config"`
}

// User is the user that an image has for its commands.
type User struct {
	Name  string `toml:"name"`
	UID   int    `toml:"uid"`
	GID   int    `toml:"gid"`
	Home  string `toml:"home"`
	Shell string `toml:"shell"`
}

// Config is what containers of an image start with.
type Config struct {
	Workdir string   `toml:"workdir"`
	Cmd     []string `toml:"cmd"`
	Env     []string `toml:"env"`
}

// Default is the recipe of the default image.
func Default() Recipe {
	r, err := ParseRecipe(images.Default())
	if err != nil {
		panic("image: the embedded default.toml: " + err.Error())
	}
	return r
}

// ParseRecipe reads and checks a recipe. Its errors are one line, and name the line
// or the key that is wrong.
func ParseRecipe(text []byte) (Recipe, error) {
	var r Recipe
	d := toml.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(&r)
	if strict, ok := errors.AsType[*toml.StrictMissingError](err); ok {
		first := strict.Errors[0]
		line, _ := first.Position()
		return Recipe{}, fmt.Errorf("line %d: there is no key %s", line, strings.Join(first.Key(), "."))
	}
	if bad, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, _ := bad.Position()
		return Recipe{}, fmt.Errorf("line %d: %s", line, strings.TrimPrefix(bad.Error(), "toml: "))
	}
	if err != nil {
		return Recipe{}, fmt.Errorf("read it: %w", err)
	}
	return r, r.check()
}

// Name is the name of the image in the store. It stands for what the recipe
// says, so that an image of that name need not be built again.
func (r Recipe) Name() string {
	canonical, err := json.Marshal(struct {
		Builder int
		Recipe  Recipe
	}{builderVersion, r})
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	sum := sha256.Sum256(canonical)
	name := r.Base + ":" + hex.EncodeToString(sum[:])[:12]
	if full, err := Normalize(name); err == nil {
		return full
	}
	return name
}

// The rules are narrow because the values end up in command lines and scripts.
var (
	baseRule    = regexp.MustCompile(`^[a-z0-9]+([._/-][a-z0-9]+)*$`)
	suiteRule   = regexp.MustCompile(`^[a-z]+$`)
	packageRule = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+$`)
	patternRule = regexp.MustCompile(`^/[A-Za-z0-9/._*?@+-]+$`)
	userRule    = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)
	dirRule     = regexp.MustCompile(`^/[A-Za-z0-9/._-]+$`)
)

func (r Recipe) check() error {
	bad := func(key string, value any) error {
		return fmt.Errorf("%s: %q cannot be used", key, fmt.Sprint(value))
	}
	switch {
	case r.Version != 1:
		return fmt.Errorf("version %d is not known to this program; it reads version 1", r.Version)
	case !baseRule.MatchString(r.Base):
		return bad("name", r.Base)
	case !suiteRule.MatchString(r.Suite):
		return bad("suite", r.Suite)
	case r.Epoch <= 0:
		return bad("epoch", r.Epoch)
	case !userRule.MatchString(r.User.Name) || r.User.Name == "root":
		return bad("user.name", r.User.Name)
	case r.User.UID < 1 || r.User.UID > 59999:
		return bad("user.uid", r.User.UID)
	case r.User.GID < 1 || r.User.GID > 59999:
		return bad("user.gid", r.User.GID)
	}
	for key, dir := range map[string]string{"user.home": r.User.Home, "user.shell": r.User.Shell, "config.workdir": r.Config.Workdir} {
		if !dirRule.MatchString(dir) || path.Clean(dir) != dir {
			return bad(key, dir)
		}
	}
	for _, p := range r.Packages {
		if !packageRule.MatchString(p) {
			return bad("packages", p)
		}
	}
	for _, p := range append(r.Exclude[:len(r.Exclude):len(r.Exclude)], r.Keep...) {
		if !patternRule.MatchString(p) {
			return bad("exclude, keep", p)
		}
	}
	for _, e := range r.Config.Env {
		if name, _, ok := strings.Cut(e, "="); !ok || name == "" || strings.ContainsRune(e, 0) {
			return bad("config.env", e)
		}
	}
	return nil
}
