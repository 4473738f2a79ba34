package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// sandboxOf is a profile with entries of special paths, "KIND=ACCESS".
func sandboxOf(entries ...string) map[string]any {
	var list []any
	for _, e := range entries {
		kind, access, _ := strings.Cut(e, "=")
		list = append(list, map[string]any{"path": map[string]any{"type": "special", "value": map[string]any{"kind": kind}}, "access": access})
	}
	return map[string]any{
		"permissions":         map[string]any{"type": "managed", "network": "restricted", "file_system": map[string]any{"type": "restricted", "entries": list}},
		"windowsSandboxLevel": "disabled", "cwd": "file:///workspace", "workspaceRoots": []string{"file:///workspace"},
	}
}

const tellPrivileges = `grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\t'
(mount -t tmpfs x /mnt || unshare -U true || unshare -m true || echo x >/proc/sys/kernel/hostname || cat /run/exec-server/io/*) >/dev/null 2>&1 || echo kept in
head -c 1 /proc/kcore 2>/dev/null | wc -c | tr -d ' '
`

// What the agent has to confine commands, no command gets: neither the image's
// root nor another user, with a profile or without.
func TestCommandsGetNothingOfWhatConfinesThem(t *testing.T) {
	for user, effective := range map[string]string{"0": "00000000a80425fb", "1234:1234": "0000000000000000"} {
		t.Run(user, func(t *testing.T) {
			r := newRoot(t, "[profile.default]\nimage = \"test/busybox:1\"\nuser = \""+user+"\"\n")
			h := r.serve().connect("/", "")
			if got, want := h.sh(tellPrivileges), "CapEff:"+effective+"\nCapBnd:00000000a80425fb\nNoNewPrivs:0\nSeccomp:2\nkept in\n0"; got != want {
				t.Errorf("without a profile: %s, want %s", got, want)
			}
			const none = "CapEff:0000000000000000\nCapBnd:0000000000000000\nNoNewPrivs:1\nSeccomp:2\nkept in\n0\n"
			for name, test := range map[string]struct {
				profile []string
				script  string
				want    string
			}{
				"read-only": {[]string{"root=read"}, "(echo x >f) 2>/dev/null || echo refused; [ $(ls -d /proc/[0-9]* | wc -l) -le 5 ] && echo alone; touch /dev/shm/x && echo shm", "refused\nalone\nshm\n"},
				"workspace": {[]string{"root=read", "project_roots=write"}, "echo x >f && echo written; mkdir .git 2>/dev/null || echo refused; ls -A", "written\nrefused\n.agents\n.aws\n.codex\n.git\nf\n"},
				"minimal":   {[]string{"minimal=read", "project_roots=write"}, "ls /; ls -A /workspace", "bin\ndev\netc\nproc\nworkspace\n.agents\n.aws\n.codex\n.git\n"},
			} {
				out, _ := h.finish(map[string]any{"sandbox": sandboxOf(test.profile...), "cwd": "file:///workspace"}, tellPrivileges+test.script)
				if out != none+test.want {
					t.Errorf("%s: %s, want %s", name, out, none+test.want)
				}
				h.sh("rm -f /workspace/f")
			}
		})
	}
}

// What stands in for missing directories of a project goes with the server, also
// while a command needs it.
func TestNothingStandsInForAnythingLater(t *testing.T) {
	for _, runtime := range []string{"host", "containerd"} {
		t.Run(runtime, func(t *testing.T) {
			r := newRoot(t, "")
			workspace, uri := filepath.Join(r.dir, "root/environments/default/workspace"), "file:///workspace"
			if runtime == "host" {
				workspace = t.TempDir()
				uri = "file://" + workspace
			}
			profile := sandboxOf("root=read", "project_roots=write")
			profile["cwd"], profile["workspaceRoots"] = uri, []string{uri}
			more := map[string]any{"sandbox": profile, "cwd": uri}
			for _, running := range []bool{false, true} {
				s := r.serve("--runtime", runtime)
				h := s.connect("/", "")
				h.finish(more, "true")
				if running {
					_, proc := h.script(more, "echo ready; sleep 1000")
					wait(t, proc.prints, "the command")
				}
				if entries, err := os.ReadDir(workspace); err != nil || len(entries) != 4 {
					t.Errorf("while they are needed: %v, %v", entries, err)
				}
				s.stop(syscall.SIGTERM)
				if entries, err := os.ReadDir(workspace); err != nil || len(entries) != 0 {
					t.Errorf("afterwards: %v, %v", entries, err)
				}
			}
		})
	}
}
