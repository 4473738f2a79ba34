package doctor

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/exec-server/exec-server/internal/confine"
	"github.com/exec-server/exec-server/internal/process"
	"github.com/exec-server/exec-server/internal/proto"
)

// confinement confines a thread as one that starts a command, and sees whether
// that holds.
func confinement() Check {
	const name = "confinement"
	policy, err := confine.Resolve(&proto.Sandbox{Restricted: true, Entries: []proto.SandboxEntry{{Kind: "root", Access: "read"}}}, confine.Context{})
	if err != nil {
		return Check{Name: name, Status: Fail, Detail: err.Error()}
	}
	held, err := process.Confiner().Start(confine.Job{Policy: policy, User: (*process.Identity)(nil), Terminal: -1}, func() error {
		fd, err := unix.Open("/exec-server-doctor", unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		if err == nil {
			_ = unix.Close(fd)
			_ = unix.Unlink("/exec-server-doctor")
			return errors.New("a file could be made where nothing may be written")
		}
		if !errors.Is(err, unix.EROFS) {
			return fmt.Errorf("writing where nothing may be written: %w", err)
		}
		return nil
	})
	held.End()
	process.Confiner().Close()
	if err != nil {
		return Check{Name: name, Status: Warn, Detail: "commands cannot have permission profiles: " + err.Error(),
			Fix: "run it as root, with a kernel of at least 5.12"}
	}
	return ok(name, "commands can have permission profiles")
}
