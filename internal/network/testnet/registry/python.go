package registry

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
)

const wheelName = "hello_exec-" + Version + "-py3-none-any.whl"

// wheel is a package of Python's with a module hello_exec that prints the greeting.
// https://packaging.python.org/en/latest/specifications/binary-distribution-format/
func wheel() []byte {
	const info = "hello_exec-" + Version + ".dist-info/"
	files := []file{
		{name: "hello_exec.py", text: "print('" + Greeting + "')\n"},
		{name: info + "METADATA", text: "Metadata-Version: 2.1\nName: " + Name + "\nVersion: " + Version + "\n"},
		{name: info + "WHEEL", text: "Wheel-Version: 1.0\nGenerator: testnet\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
	}
	record := ""
	for _, f := range files {
		sum := sha256.Sum256([]byte(f.text))
		record += fmt.Sprintf("%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.text))
	}
	return zipped(append(files, file{name: info + "RECORD", text: record + info + "RECORD,,\n"})...)
}

// pythonIndex is the page of the package in the simple index (PEP 503).
func pythonIndex() map[string][]byte {
	page := fmt.Sprintf("<!DOCTYPE html><html><body><a href=\"https://files.pythonhosted.org/packages/%s#sha256=%x\">%s</a></body></html>\n",
		wheelName, sha256.Sum256(wheel()), wheelName)
	return map[string][]byte{"/simple/" + Name + "/": []byte(page)}
}

func pythonFiles() map[string][]byte {
	return map[string][]byte{"/packages/" + wheelName: wheel()}
}
