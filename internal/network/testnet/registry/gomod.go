package registry

// Module is the path of Go's module, whose package has the constant Greeting.
const Module = "example.com/hello"

// goFiles are a module as a proxy serves it: https://go.dev/ref/mod#goproxy-protocol
func goFiles() map[string][]byte {
	const at, version = "/" + Module + "/@v/", "v" + Version
	const mod = "module " + Module + "\n\ngo 1.19\n"
	const top = Module + "@" + version + "/"
	const info = `{"Version":"` + version + `","Time":"2025-01-01T00:00:00Z"}`
	return map[string][]byte{
		at + "list":            []byte(version + "\n"),
		at + version + ".info": []byte(info),
		at + version + ".mod":  []byte(mod),
		at + version + ".zip": zipped(
			file{name: top + "go.mod", text: mod},
			file{name: top + "hello.go", text: "package hello\n\nconst Greeting = \"" + Greeting + "\"\n"},
		),
		"/" + Module + "/@latest": []byte(info),
	}
}
