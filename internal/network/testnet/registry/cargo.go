package registry

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
)

// crate is a library with a constant GREETING.
func crate() []byte {
	const top = Name + "-" + Version + "/"
	return tarball(
		file{top + "Cargo.toml", "[package]\nname = \"" + Name + "\"\nversion = \"" + Version + "\"\nedition = \"2021\"\n", 0o644},
		file{top + "src/lib.rs", "pub const GREETING: &str = \"" + Greeting + "\";\n", 0o644},
	)
}

// cargoIndex is a sparse index: https://doc.rust-lang.org/cargo/reference/registry-index.html
func cargoIndex() map[string][]byte {
	line, err := json.Marshal(map[string]any{
		"name": Name, "vers": Version, "deps": []any{}, "cksum": fmt.Sprintf("%x", sha256.Sum256(crate())), "features": map[string]any{}, "yanked": false,
	})
	must(err)
	return map[string][]byte{
		"/config.json":   []byte(`{"dl":"https://static.crates.io/crates","api":"https://crates.io"}`),
		"/he/ll/" + Name: append(line, '\n'),
	}
}

func cargoFiles() map[string][]byte {
	return map[string][]byte{"/crates/" + Name + "/" + Version + "/download": crate()}
}
