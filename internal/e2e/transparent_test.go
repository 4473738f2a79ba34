package e2e

import "testing"

// talkDirectly uses the network as a program does that knows of no proxy: what is
// not allowed is reset, at one moment or another, and neither unknown nor out of
// reach, as in a namespace without interfaces. What is local stays so.
const talkDirectly = `
for at in "x.example 80" "1.2.3.4 80" "127.0.0.1 8000"; do
	echo x | nc -w 20 $at 2>&1 | grep -v reset
	echo "$at done"
done
`

func TestTransparentTCPInAContainer(t *testing.T) {
	for _, user := range []string{"0", "1234:1234"} {
		r := newRoot(t, "[profile.default]\nimage = \"test/busybox:1\"\nuser = \""+user+"\"\n")
		h := r.serve().connect("/", "")
		if flag := h.must("environment/info", nil).Get("capabilities").Get("networkProxyTransparentTcp"); string(flag.AppendJSON(nil)) != "true" {
			t.Error("the flag is not true")
		}
		for _, profile := range []string{"root=read", "minimal=read"} {
			params := map[string]any{
				"sandbox": sandboxOf(profile),
				"networkProxy": map[string]any{"proxy": map[string]any{
					"enabled": true, "enableSocks5": true, "enableSocks5Udp": false, "allowUpstreamProxy": false, "dangerouslyAllowAllUnixSockets": false,
					"mode": "full", "allowLocalBinding": false, "transparentTcp": true,
				}},
			}
			out, code := h.finish(params, talkDirectly)
			if want := "x.example 80 done\n1.2.3.4 80 done\nnc: can't connect to remote host (127.0.0.1): Connection refused\n127.0.0.1 8000 done\n"; out != want || code != 0 {
				t.Errorf("user %s, %s: %s, exit code %d", user, profile, out, code)
			}
		}
	}
}
