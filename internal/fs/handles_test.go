package fs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func openParams(id, path, more string) string {
	return `{"handleId":"` + id + `","path":"$U/` + path + `"` + more + `}`
}

func blockParams(id, offset, rest string) string {
	return `{"handleId":"` + id + `","offset":` + offset + `,` + rest + `}`
}

const (
	readBounds  = "-32600 file read block length must be between 1 and 1048576"
	writeBounds = "-32600 file write block length must be between 1 and 1048576"
	writeRange  = "-32600 file write range exceeds the signed 64-bit file offset limit"
	longID      = "-32600 file handle ID must not exceed 32 bytes"
	unknown     = "-32004 unknown file handle `h`"
	firstByte   = `{"chunk":b64(0),"eof":false}`
)

func TestReadBlock(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, "f=0123456789")
	run(t, dir, []req{
		{"open", openParams("h", "f", ""), `{"handleId":"h"}`},
		{"readBlock", blockParams("h", "0", `"len":4`), `{"chunk":b64(0123),"eof":false}`},
		{"readBlock", blockParams("h", "8", `"len":4`), `{"chunk":b64(89),"eof":true}`},
		{"readBlock", blockParams("h", "6", `"len":4`), `{"chunk":b64(6789),"eof":false}`},
		{"readBlock", blockParams("h", "10", `"len":4`), `{"chunk":"","eof":true}`},
		{"readBlock", blockParams("h", "1000", `"len":1`), `{"chunk":"","eof":true}`},
		{"readBlock", blockParams("h", "0", `"len":1048576`), `{"chunk":b64(0123456789),"eof":true}`},
		{"readBlock", blockParams("h", "0", `"len":0`), readBounds},
		{"readBlock", blockParams("h", "0", `"len":1048577`), readBounds},
		{"readBlock", blockParams("h", "0", `"len":18446744073709551615`), readBounds},
		{"readBlock", blockParams("none", "0", `"len":0`), readBounds},
		{"readBlock", blockParams("h", "0", `"len":1`), firstByte},
		{"remove", `{"path":"$U/f"}`, ok},
		{"readBlock", blockParams("h", "0", `"len":1`), firstByte},
		{"readBlock", blockParams("h", "9223372036854775808", `"len":1`), einval}, // and closed it
		{"readBlock", blockParams("h", "0", `"len":1`), unknown},
	})
}

func TestWriteBlock(t *testing.T) {
	dir := tempDir(t)
	block := strings.Repeat("x", maxBlock)
	run(t, dir, []req{
		{"open", openParams("h", "new", `,"mode":"replace"`), `{"handleId":"h"}`},
		{"writeBlock", blockParams("h", "0", `"chunk":b64(hello)`), ok},
		{"writeBlock", blockParams("h", "8", `"chunk":b64(end)`), ok},
		{"writeBlock", blockParams("h", "1", `"chunk":b64(EL)`), ok},
		{"readFile", `{"path":"$U/new"}`, `{"dataBase64":b64(hELlo` + "\x00\x00\x00" + `end)}`},
		{"open", openParams("g", "new", `,"mode":"replace"`), `{"handleId":"g"}`},
		{"readFile", `{"path":"$U/new"}`, `{"dataBase64":""}`},
		{"close", `{"handleId":"g"}`, ok},
		{"writeBlock", blockParams("h", "0", `"chunk":""`), writeBounds},
		{"writeBlock", blockParams("h", "0", `"chunk":b64(`+block+`x)`), writeBounds},
		{"writeBlock", blockParams("none", "0", `"chunk":""`), writeBounds},
		{"writeBlock", blockParams("h", "0", `"chunk":b64(`+block+`)`), ok},
		{"writeBlock", blockParams("h", "9223372036854775807", `"chunk":b64(x)`), writeRange},
		{"writeBlock", blockParams("h", "18446744073709551615", `"chunk":b64(x)`), writeRange},
		{"writeBlock", blockParams("h", "0", `"chunk":"!"`), "-32602 Invalid symbol 33, offset 0."},
		{"writeBlock", blockParams("h", "0", `"chunk":b64(y)`), ok},
		{"close", `{"handleId":"h"}`, ok},
		{"writeBlock", blockParams("h", "0", `"chunk":b64(x)`), unknown},
	})
	holds(t, filepath.Join(dir, "new"), "y"+block[1:])
}

func TestOpen(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, "f=0123456789", "d/", "fifo|", "l>f", "dangling>made")
	x32, e32 := strings.Repeat("x", 32), strings.Repeat("é", 16)
	run(t, dir, []req{
		{"open", openParams("a", "none", ""), enoent},
		{"open", openParams("a", "f/x", ""), enotdir},
		{"open", openParams("a", "d", ""), "-32600 path `$D/d` is not a file"},
		{"open", openParams("a", "fifo", ""), "-32600 path `$D/fifo` is not a file"},
		{"open", `{"handleId":"a","path":"file:///dev/null"}`, "-32600 path `/dev/null` is not a file"},
		{"open", openParams("a", "d", `,"mode":"replace"`), eisdir},
		{"open", openParams("a", "fifo", `,"mode":"replace"`), "-32600 path `$D/fifo` is not a file"},
		{"open", openParams("a", "no/x", `,"mode":"replace"`), enoent},
		{"open", openParams("a", "f", `,"mode":null`), "-32602 invalid type: null, expected a string"},
		{"open", openParams("a", "f", `,"mode":"read"`), `{"handleId":"a"}`},
		{"open", openParams("a", "f", ""), "-32600 file handle `a` already exists"},
		{"open", openParams("a", "none", ""), "-32600 file handle `a` already exists"},
		{"open", `{"handleId":"a","path":"file:///C:/x","sandbox":$S}`, "-32600 file handle `a` already exists"},
		{"open", openParams("l", "l", ""), `{"handleId":"l"}`},
		{"open", openParams("made", "dangling", `,"mode":"replace"`), `{"handleId":"made"}`},
		{"open", openParams("", "f", ""), `{"handleId":""}`},
		{"readBlock", blockParams("", "0", `"len":1`), firstByte},
		{"open", openParams(x32, "f", ""), `{"handleId":"` + x32 + `"}`},
		{"open", openParams(e32, "f", ""), `{"handleId":"` + e32 + `"}`},
		{"open", openParams(x32+"x", "f", ""), longID},
		{"open", openParams(e32+"é", "f", ""), longID},
		{"readBlock", blockParams(x32+"x", "0", `"len":0`), longID},
		{"writeBlock", blockParams(x32+"x", "0", `"chunk":""`), longID},
		{"close", `{"handleId":"` + x32 + `x"}`, longID},
		{"close", `{"handleId":"h"}`, ok},
		{"readBlock", blockParams("h", "0", `"len":1`), unknown},
		{"open", openParams("h", "f", ""), `{"handleId":"h"}`},
		{"writeBlock", blockParams("h", "0", `"chunk":b64(x)`), ebadf}, // and left it open
		{"readBlock", blockParams("h", "0", `"len":1`), firstByte},
		{"close", `{"handleId":"h"}`, ok},
		{"close", `{"handleId":"h"}`, ok},
		{"readBlock", blockParams("h", "0", `"len":1`), unknown},
		{"open", openParams("h", "w", `,"mode":"replace"`), `{"handleId":"h"}`},
		{"readBlock", blockParams("h", "0", `"len":1`), ebadf}, // and closed it
		{"writeBlock", blockParams("h", "0", `"chunk":b64(x)`), unknown},
	})
}

func TestHandleLimit(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, "f=0")
	f := New(nil)
	for i := range maxHandles {
		id := fmt.Sprint("h", i)
		runOn(t, f, dir, []req{{"open", openParams(id, "f", ""), `{"handleId":"` + id + `"}`}})
	}
	const full = "-32600 at most 128 file handles may be open per connection"
	runOn(t, f, dir, []req{
		{"open", openParams("h", "f", ""), full},
		{"open", openParams("h", "none", ""), full},
		{"open", openParams("h1", "f", ""), "-32600 file handle `h1` already exists"},
		{"close", `{"handleId":"h5"}`, ok},
		{"open", openParams("h", "none", ""), enoent}, // takes no place
		{"open", openParams("h", "f", ""), `{"handleId":"h"}`},
		{"open", openParams("more", "f", ""), full},
	})
	run(t, dir, []req{{"readBlock", blockParams("h", "0", `"len":1`), unknown}}) // another connection
	f.Close()
	f.Close()
	runOn(t, f, dir, []req{
		{"readBlock", blockParams("h", "0", `"len":1`), unknown},
		{"close", `{"handleId":"h"}`, ok},
		{"open", openParams("h", "f", ""), ebadf},
	})
}

// A handle that is closed while its file is being opened does not come to life.
func TestCloseWhileOpening(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, "f=0")
	file, err := os.Open(filepath.Join(dir, "f"))
	check(t, err)
	defer file.Close()
	for _, closing := range []func(*Files){
		func(f *Files) { f.drop("h", nil) },
		func(f *Files) { f.drop("h", nil); f.reserve("h") },
		func(f *Files) { f.Close() },
	} {
		f := New(nil)
		h, err := f.reserve("h")
		check(t, err)
		if _, _, err := f.get("h"); err == nil {
			t.Error("a handle can be used before it is open")
		}
		closing(f)
		if f.fill("h", h, file) {
			t.Error("a closed handle was filled")
		}
	}
}

// Requests on the same few ids at once: every block read is of the file that
// was opened under that id.
func TestHandlesAtOnce(t *testing.T) {
	dir := tempDir(t)
	build(t, dir, "f0=0", "f1=1")
	f := New(nil)
	var group sync.WaitGroup
	for g := range 8 {
		group.Go(func() {
			id := fmt.Sprint(g % 2)
			for range 200 {
				call(t, f, "fs/open", expand(dir, openParams(id, "f"+id, "")))
				got, wireErr := call(t, f, "fs/readBlock", blockParams(id, "0", `"len":1`))
				if want := expand("", `{"chunk":b64(`+id+`),"eof":false}`); wireErr == nil && got != want {
					t.Errorf("handle %s: %s", id, got)
				} else if wireErr != nil && wireErr.Code != -32004 {
					t.Errorf("handle %s: %v", id, wireErr)
				}
				call(t, f, "fs/close", `{"handleId":"`+id+`"}`)
			}
		})
	}
	group.Wait()
	f.Close()
}
