package containerd

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// Each environment has a range of the host's user and group ids to itself. The
// ranges lie between those that systemd has for its own containers and those
// that it has for foreign images.
const (
	idCount = 65536
	idFirst = 1879048192
	idEnd   = 2147352576
)

// idRange is idCount ids of the host, from base.
type idRange struct{ base uint32 }

// valid tells whether it is one of the ranges.
func (r idRange) valid() bool {
	return r.base >= idFirst && r.base <= idEnd-idCount && (r.base-idFirst)%idCount == 0
}

// has tells whether the id is in the range.
func (r idRange) has(id uint32) bool { return id >= r.base && id-r.base < idCount }

// mappings maps the ids from 0 to the range.
func (r idRange) mappings() []specs.LinuxIDMapping {
	return []specs.LinuxIDMapping{{ContainerID: 0, HostID: r.base, Size: idCount}}
}

// freeRange returns a range that no environment has, and no user namespace that
// the machine has at the moment. Servers of different roots know nothing of each
// other's environments, so each begins to look somewhere else.
func freeRange(root string, others []record) (idRange, error) {
	taken := usedRanges()
	for _, o := range others {
		taken[o.IDBase] = true
	}
	return pickRange(root, taken)
}

func pickRange(root string, taken map[uint32]bool) (idRange, error) {
	const count = (idEnd - idFirst) / idCount
	hash := fnv.New32a()
	hash.Write([]byte(root))
	start := hash.Sum32() % count
	for i := range uint32(count) {
		base := idFirst + (start+i)%count*idCount
		if !taken[base] {
			return idRange{base}, nil
		}
	}
	return idRange{}, errors.New("all ranges of user ids are taken; remove environments")
}

// usedRanges returns the ranges that user namespaces of running processes touch.
func usedRanges() map[uint32]bool {
	used := map[uint32]bool{}
	maps, _ := filepath.Glob("/proc/[0-9]*/uid_map")
	for _, path := range maps {
		text, _ := os.ReadFile(path) // the process may have ended
		for line := range strings.Lines(string(text)) {
			var inside, outside, n uint64
			if _, err := fmt.Sscan(line, &inside, &outside, &n); err != nil || n > 1<<31 {
				continue // that of the host maps everything
			}
			from, to := max(outside, idFirst), min(outside+n, idEnd)
			for base := from - (from-idFirst)%idCount; base < to; base += idCount {
				used[uint32(base)] = true
			}
		}
	}
	return used
}
