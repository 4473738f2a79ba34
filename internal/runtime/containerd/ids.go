package containerd

import (
	"errors"

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

// freeRange returns the first range that no environment has.
func freeRange(others []record) (idRange, error) {
	taken := make(map[uint32]bool, len(others))
	for _, o := range others {
		taken[o.IDBase] = true
	}
	for base := uint32(idFirst); base <= idEnd-idCount; base += idCount {
		if !taken[base] {
			return idRange{base}, nil
		}
	}
	return idRange{}, errors.New("all ranges of user ids are taken; remove environments")
}
