package doctor

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// controllers are those that a sandbox is limited with.
var controllers = []string{"cpu", "memory", "pids"}

// cgroups looks for the controllers and makes, and removes, a group in each
// place where they are mounted.
func (o Options) cgroups() Check {
	const name = "cgroups"
	mounts, unified, err := o.cgroupMounts()
	if err != nil {
		return Check{Name: name, Status: Fail, Detail: err.Error()}
	}
	version, where := "v1", mounts
	if len(mounts) == 0 {
		version, where = "v2", map[string]string{}
		enabled, _ := os.ReadFile(o.sys + unified + "/cgroup.controllers")
		for _, c := range strings.Fields(string(enabled)) {
			where[c] = unified
		}
	} else if unified != "" {
		version = "v1 (hybrid)"
	}
	var missing, places []string
	for _, c := range controllers {
		if where[c] == "" {
			missing = append(missing, c)
		} else if !slices.Contains(places, where[c]) {
			places = append(places, where[c])
		}
	}
	if len(mounts) == 0 && unified == "" {
		return Check{Name: name, Status: Fail, Detail: "no cgroup file system is mounted",
			Fix: "mount -t cgroup2 none /sys/fs/cgroup"}
	}
	if missing != nil {
		return Check{Name: name, Status: Fail, Detail: fmt.Sprintf("%s, but without %s", version, strings.Join(missing, " and ")),
			Fix: missingFix(version, missing)}
	}
	if version == "v2" {
		if err := enableControllers(o.sys + unified); err != nil {
			return Check{Name: name, Status: Fail, Detail: fmt.Sprintf("v2, but the controllers cannot be enabled below %s: %v", unified, err),
				Fix: "move the processes in it into a group below it, or run it with the machine's own cgroups (docker run --cgroupns=host)"}
		}
	}
	for _, place := range places {
		probe := filepath.Join(o.sys+place, fmt.Sprintf("exec-server-doctor-%d", os.Getpid()))
		if err := os.Mkdir(probe, 0o755); err != nil {
			return Check{Name: name, Status: Fail, Detail: fmt.Sprintf("%s, but no group can be made: %v", version, err),
				Fix: "run it as root, outside of a container or with the container's cgroups writable"}
		}
		if err := os.Remove(probe); err != nil {
			return Check{Name: name, Status: Fail, Detail: err.Error()}
		}
	}
	return ok(name, "%s with %s in %s", version, strings.Join(controllers, ", "), strings.Join(places, ", "))
}

func missingFix(version string, missing []string) string {
	if version == "v2" && !slices.Contains(missing, "memory") {
		return fmt.Sprintf(`echo "+%s" > cgroup.subtree_control, in the parent group`, strings.Join(missing, " +"))
	}
	return "add cgroup_enable=" + strings.Join(missing, " cgroup_enable=") + " to the kernel's command line, mount them, or enable them in the parent's cgroup.subtree_control"
}

// enableControllers enables the controllers for the groups below dir, as runc
// will: but all in one write, which is all or nothing. What runc enables one by
// one before it fails makes the group unusable.
func enableControllers(dir string) error {
	return os.WriteFile(dir+"/cgroup.subtree_control", []byte("+"+strings.Join(controllers, " +")), 0)
}

// cgroupMounts returns where the controllers of version 1 are mounted, and where
// version 2 is, "" if nowhere.
func (o Options) cgroupMounts() (v1 map[string]string, unified string, err error) {
	f, err := os.Open(o.sys + "/proc/self/mountinfo")
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	v1 = map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		mount, fs, found := strings.Cut(lines.Text(), " - ")
		left, right := strings.Fields(mount), strings.Fields(fs)
		if !found || len(left) < 5 || len(right) < 3 {
			continue
		}
		switch right[0] {
		case "cgroup":
			for _, option := range strings.Split(right[2], ",") {
				if slices.Contains(controllers, option) && v1[option] == "" {
					v1[option] = left[4]
				}
			}
		case "cgroup2":
			if unified == "" {
				unified = left[4]
			}
		}
	}
	return v1, unified, nil
}
