package registry

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"time"
)

const debianControl = "Package: " + Name + "\nVersion: " + Version + "\nArchitecture: all\nMaintainer: Nobody <nobody@test>\nDescription: greets\n"

// deb is a package of Debian's with a program hello-exec: an ar archive, deb(5).
func deb() []byte {
	var buf bytes.Buffer
	buf.WriteString("!<arch>\n")
	add := func(name string, data []byte) {
		fmt.Fprintf(&buf, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", name, 0, 0, 0, 0o100644, len(data))
		buf.Write(data)
		if len(data)%2 == 1 {
			buf.WriteByte('\n')
		}
	}
	add("debian-binary", []byte("2.0\n"))
	add("control.tar.gz", tarball(file{"./control", debianControl, 0o644}))
	add("data.tar.gz", tarball(file{"./usr/bin/" + Name, "#!/bin/sh\necho " + Greeting + "\n", 0o755}))
	return buf.Bytes()
}

// debianFiles are a repository without signatures, suite "test", component "main".
// https://wiki.debian.org/DebianRepository/Format
func debianFiles() map[string][]byte {
	pack := deb()
	const path = "pool/main/h/" + Name + "/" + Name + "_" + Version + "_all.deb"
	list := fmt.Appendf(nil, "%sFilename: %s\nSize: %d\nSHA256: %x\n\n", debianControl, path, len(pack), sha256.Sum256(pack))
	files := map[string][]byte{"/debian/" + path: pack}
	sums := ""
	for _, arch := range []string{"amd64", "arm64"} {
		name := "main/binary-" + arch + "/Packages"
		files["/debian/dists/test/"+name] = list
		sums += fmt.Sprintf(" %x %d %s\n", sha256.Sum256(list), len(list), name)
	}
	files["/debian/dists/test/Release"] = fmt.Appendf(nil,
		"Suite: test\nCodename: test\nDate: %s\nArchitectures: amd64 arm64\nComponents: main\nSHA256:\n%s",
		time.Now().UTC().Add(-time.Hour).Format(time.RFC1123), sums)
	return files
}
