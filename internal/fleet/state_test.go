package fleet

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/config"
	"github.com/exec-server/exec-server/internal/remote/credential"
)

func TestWhatWasAddedIsKept(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world, fl *Fleet) {
		key, err := credential.Bearer("a-secret")
		if err != nil {
			t.Fatal(err)
		}
		direct := Entry{Name: "direct", Origin: Added, Settings: config.Environment{Remote: "https://r.example", Transport: "direct", AWSRegion: "x"}}
		secret, listed, gone := entry("secret"), entry("listed"), entry("gone")
		secret.Source, secret.Settings.Key = key, config.Key{}
		listed.Origin = Configured
		for _, e := range []Entry{direct, secret, listed, gone, entry("a.1")} {
			if m := add(t, fl, e); m.Kept() != (e.Origin == Added && e.Source == nil) {
				t.Errorf("%s is kept: %v", e.Name, m.Kept())
			}
		}
		if err := fl.Remove(context.Background(), "gone"); err != nil {
			t.Error(err)
		}
		text, err := os.ReadFile(fl.opts.State)
		if err != nil || strings.Contains(string(text), "secret") {
			t.Errorf("%v: the file is %s", err, text)
		}
		if st, err := os.Stat(fl.opts.State); err != nil || st.Mode() != 0o600 {
			t.Errorf("%v, %v", st.Mode(), err)
		}
		if all, err := os.ReadDir(filepath.Dir(fl.opts.State)); err != nil || len(all) != 1 {
			t.Errorf("beside it are %v, %v", all, err)
		}
		got, err := Kept(fl.opts.State)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]Entry{entry("a.1"), direct}, got); diff != "" {
			t.Error(diff)
		}
		again := open(t, w, fl.opts.State)
		again.Start(got...)
		if list := again.List(); len(list) != 2 || !list[0].Kept {
			t.Errorf("there are %+v", list)
		}
		if err := again.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if after, err := os.ReadFile(fl.opts.State); err != nil || string(after) != string(text) {
			t.Errorf("the end of a daemon changes it to %s, %v", after, err)
		}
	})
}

func TestWhatCannotBeKeptIsNotAdded(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world, fl *Fleet) {
		fl.opts.State = "/proc/nothing/environments.json"
		if _, err := fl.Add(context.Background(), entry("a")); err == nil || len(fl.List()) != 0 {
			t.Errorf("%v; there are %+v", err, fl.List())
		}
	})
}

// What could not be taken out of the file can be removed once more.
func TestWhatIsKeptStillIsNotRemoved(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world, fl *Fleet) {
		add(t, fl, entry("a"))
		path := fl.opts.State
		fl.opts.State = "/proc/nothing/environments.json"
		if err := fl.Remove(context.Background(), "a"); err == nil || len(fl.List()) != 1 {
			t.Errorf("%v; there are %+v", err, fl.List())
		}
		fl.opts.State = path
		if err := fl.Remove(context.Background(), "a"); err != nil || len(fl.List()) != 0 {
			t.Errorf("%v; there are %+v", err, fl.List())
		}
		if got, err := Kept(path); err != nil || len(got) != 0 {
			t.Errorf("kept are %+v, %v", got, err)
		}
	})
}

// A pipe would be waited for, and no signal would end that.
func TestStateThatIsNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "environments.json")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Kept(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a pipe is taken for %v, %v", got, err)
	}
}

func TestStateOfAnotherKindIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "environments.json")
	if got, err := Kept(path); err != nil || len(got) != 0 {
		t.Errorf("without a file there are %v, %v", got, err)
	}
	for _, text := range []string{``, `[]`, `{}`, `{"version":2,"environments":{}}`, `{"version":1,"environments":{"a":{"token":"x"}}}`, `{"version":1,"environments":[]}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Kept(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s is taken for %v, %v", text, got, err)
		}
	}
}

func FuzzParseState(f *testing.F) {
	f.Add([]byte(`{"version":1,"environments":{"a":{"remote":"https://r","environment_id":"","transport":"","profile":"","key_command":["x"]}}}`))
	f.Fuzz(func(t *testing.T, data []byte) { _, _ = parseState(data) })
}
