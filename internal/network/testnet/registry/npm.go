package registry

import (
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
)

// npmFiles are a package of Node's with a program hello-exec, and what the registry says of it.
// https://github.com/npm/registry/blob/main/docs/responses/package-metadata.md
func npmFiles() map[string][]byte {
	manifest := map[string]any{"name": Name, "version": Version, "bin": map[string]string{Name: "hello.js"}, "main": "hello.js"}
	text, err := json.Marshal(manifest)
	must(err)
	pack := tarball(
		file{"package/package.json", string(text), 0o644},
		file{"package/hello.js", "#!/usr/bin/env node\nconsole.log('" + Greeting + "')\n", 0o755},
	)
	const path = "/" + Name + "/-/" + Name + "-" + Version + ".tgz"
	sum := sha512.Sum512(pack)
	manifest["dist"] = map[string]string{
		"tarball":   "https://registry.npmjs.org" + path,
		"integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
	}
	document, err := json.Marshal(map[string]any{
		"name": Name, "dist-tags": map[string]string{"latest": Version}, "versions": map[string]any{Version: manifest},
	})
	must(err)
	return map[string][]byte{"/" + Name: document, path: pack}
}
