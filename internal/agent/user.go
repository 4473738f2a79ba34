package agent

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// User is an entry of the passwd database, with its groups.
type User struct {
	Name        string
	UID, GID    int
	Groups      []int
	Home, Shell string
}

// LookupUser finds who "name", "uid", "name:group" or "uid:gid" is, by the
// passwd and group files below root. An empty spec is uid 0. Numbers need no
// entry, names do.
func LookupUser(root, spec string) (User, error) {
	name, group, hasGroup := strings.Cut(spec, ":")
	if name == "" {
		name = "0"
	}
	u := User{Home: "/", Shell: ""}
	uid, numeric := number(name)
	found := false
	eachEntry(root+"/etc/passwd", 7, func(f []string) bool {
		id, ok := number(f[2])
		if !ok || f[0] != name && !(numeric && id == uid) {
			return false
		}
		u.Name, u.UID, u.Home, u.Shell = f[0], id, f[5], f[6]
		u.GID, _ = number(f[3])
		found = true
		return true
	})
	switch {
	case !found && !numeric:
		return User{}, fmt.Errorf("user %q is not in the image's /etc/passwd", name)
	case !found:
		u.UID = uid
		if uid == 0 {
			u.Name, u.Home = "root", "/root"
		}
	}
	if u.Home == "" {
		u.Home = "/"
	}
	if hasGroup {
		return u, u.setGroup(root, group)
	}
	eachEntry(root+"/etc/group", 4, func(f []string) bool {
		if gid, ok := number(f[2]); ok && u.Name != "" && slices.Contains(strings.Split(f[3], ","), u.Name) {
			u.Groups = append(u.Groups, gid)
		}
		return false
	})
	return u, nil
}

func (u *User) setGroup(root, group string) error {
	gid, numeric := number(group)
	found := numeric
	eachEntry(root+"/etc/group", 4, func(f []string) bool {
		if f[0] != group {
			return false
		}
		gid, found = number(f[2])
		return true
	})
	if !found {
		return fmt.Errorf("group %q is not in the image's /etc/group", group)
	}
	u.GID = gid
	return nil
}

// number reads a uid or gid.
func number(s string) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 31)
	return int(n), err == nil
}

// eachEntry calls f with the fields of each line until it returns true. A file
// that is not there has no lines.
func eachEntry(file string, fields int, f func([]string) bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		return
	}
	for line := range strings.Lines(string(data)) {
		parts := strings.Split(strings.TrimRight(line, "\r\n"), ":")
		if len(parts) >= fields && f(parts) {
			return
		}
	}
}

// Self returns the home directory and the log-in shell of the user that this
// process runs as: $HOME, and the passwd database for the rest.
func Self() (home, shell string) {
	u, err := LookupUser("", strconv.Itoa(os.Getuid()))
	if err != nil {
		u.Home = "/"
	}
	if dir := os.Getenv("HOME"); dir != "" {
		u.Home = dir
	}
	return u.Home, u.Shell
}
