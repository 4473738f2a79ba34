package doctor

import (
	"fmt"
	"os"

	"github.com/exec-server/exec-server/internal/network/netns"
	"github.com/exec-server/exec-server/internal/network/veth"
)

// network opens a network namespace as that of a sandbox, which ends with the
// check, and has a connection in it decided about. The kernel loads its modules
// for it.
func network() Check {
	const name = "network policy"
	if os.Geteuid() != 0 {
		return needsRoot(name)
	}
	if err := netns.Supported(); err != nil {
		return Check{Name: name, Status: Warn, Detail: fmt.Sprintf("not available: %v; sandboxes can have no network", err),
			Fix: "modprobe nf_tables nft_nat nft_queue || modprobe xt_NFQUEUE"}
	}
	detail := "connections out of sandboxes can be decided about"
	for _, text := range veth.Hindrances() {
		detail += "; for veth = true: " + text
	}
	return ok(name, "%s", detail)
}
