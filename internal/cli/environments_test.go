package cli

import "testing"

func TestURLsAreShownWithoutPasswords(t *testing.T) {
	for remote, want := range map[string]string{
		"": "", "https://r.example/base/": "https://r.example/base/", "http://u:secret@127.0.0.1:9": "http://u:xxxxx@127.0.0.1:9",
	} {
		if got := shown(remote); got != want {
			t.Errorf("%q is shown as %q", remote, got)
		}
	}
}
