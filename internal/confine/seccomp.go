package confine

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A filter says how system calls are answered that are not let pass.
type filter map[int]reply

// reply is the answer to a call; with families, to a call whose first argument
// is one of them, or, with others, none of them.
type reply struct {
	what     uint32
	families []uint32
	others   bool
	// bits, if not 0, are those of the first argument that the reply is for.
	bits uint32
	// pairs: the call is let pass for unix sockets that are connected or nothing;
	// datagrams can be sent anywhere from one that has never been connected.
	pairs bool
}

const (
	loadWord = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	jumpSame = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	jumpFrom = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	jumpBits = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	answer   = unix.BPF_RET | unix.BPF_K

	keepBits = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K

	offNumber, offArch, offFirst, offSecond = 0, 4, 16, 24

	allow   = unix.SECCOMP_RET_ALLOW
	refused = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	missing = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

// networkFilter is what a command may not call without the network: what makes,
// finds or uses addresses. Pairs of sockets work.
func networkFilter() filter {
	f := filter{}
	f.refuse(unix.SYS_BIND, unix.SYS_CONNECT, unix.SYS_LISTEN, unix.SYS_ACCEPT, unix.SYS_ACCEPT4, unix.SYS_SENDTO,
		unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME, unix.SYS_GETSOCKOPT, unix.SYS_SETSOCKOPT, unix.SYS_SHUTDOWN,
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_IO_URING_SETUP)
	f[unix.SYS_SOCKET] = reply{what: refused, pairs: true}
	f[unix.SYS_SOCKETPAIR] = f[unix.SYS_SOCKET]
	return f
}

// proxiedFilter is for commands that have a loopback of their own: Internet
// sockets and pairs, since others could lead out of it.
func proxiedFilter() filter { return internetFilter(unix.AF_INET, unix.AF_INET6) }

// proxiedUnixFilter is for those that may have unix sockets nonetheless.
func proxiedUnixFilter() filter { return internetFilter(unix.AF_INET, unix.AF_INET6, unix.AF_UNIX) }

func internetFilter(families ...uint32) filter {
	f := filter{}
	f.refuse(unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_IO_URING_SETUP)
	f[unix.SYS_SOCKET] = reply{what: refused, families: families, others: true}
	f[unix.SYS_SOCKETPAIR] = reply{what: refused, pairs: true}
	return f
}

// filesFilter is for commands with the network but not all files.
func filesFilter() filter {
	f := filter{}
	f.refuse(unix.SYS_IO_URING_SETUP)
	f[unix.SYS_SOCKET] = reply{what: refused, families: []uint32{unix.AF_PACKET, unix.AF_VSOCK}}
	return f
}

func (f filter) refuse(calls ...int) {
	for _, n := range calls {
		f[n] = reply{what: refused}
	}
}

// nativeArch is this machine's system call convention.
var nativeArch = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]

// program is a filter in classic BPF. Calls are found by bisection, since the
// kernel works a filter out for every call there is when it is installed.
type program []unix.SockFilter

func (f filter) program() program {
	// The numbers of another machine's conventions mean other calls.
	p := program{
		{Code: loadWord, K: offArch},
		{Code: jumpSame, Jt: 1, K: nativeArch},
		{Code: answer, K: unix.SECCOMP_RET_KILL_PROCESS},
		{Code: loadWord, K: offNumber},
	}
	if runtime.GOARCH == "amd64" { // x32 has the same arch
		p = append(p, unix.SockFilter{Code: jumpFrom, Jf: 1, K: 1 << 30}, unix.SockFilter{Code: answer, K: unix.SECCOMP_RET_KILL_PROCESS})
	}
	return append(p, f.search(slices.Sorted(maps.Keys(f)))...)
}

// search finds the call among some, in order.
func (f filter) search(calls []int) program {
	if len(calls) == 1 {
		then := f[calls[0]].program()
		return append(program{
			{Code: jumpSame, Jt: 1, K: uint32(calls[0])},
			{Code: answer, K: allow},
		}, then...)
	}
	half := len(calls) / 2
	low, high := f.search(calls[:half]), f.search(calls[half:])
	// Far jumps have no condition.
	p := program{
		{Code: jumpFrom, Jf: 1, K: uint32(calls[half])},
		{Code: unix.BPF_JMP | unix.BPF_JA, K: uint32(len(low))},
	}
	return append(append(p, low...), high...)
}

// program answers one call.
func (r reply) program() program {
	hit, miss := r.what, uint32(allow)
	if r.others {
		hit, miss = miss, hit
	}
	p := program{{Code: loadWord, K: offFirst}}
	if r.pairs {
		return append(p,
			unix.SockFilter{Code: jumpSame, Jf: 4, K: unix.AF_UNIX},
			unix.SockFilter{Code: loadWord, K: offSecond},
			unix.SockFilter{Code: keepBits, K: 0xf}, // beside flags
			unix.SockFilter{Code: jumpSame, Jt: 2, K: unix.SOCK_STREAM},
			unix.SockFilter{Code: jumpSame, Jt: 1, K: unix.SOCK_SEQPACKET},
			unix.SockFilter{Code: answer, K: r.what},
			unix.SockFilter{Code: answer, K: allow})
	}
	switch n := len(r.families); {
	case r.bits != 0:
		p = append(p, unix.SockFilter{Code: jumpBits, Jt: 1, K: r.bits})
	case n == 0:
		return program{{Code: answer, K: r.what}}
	default:
		for i, family := range r.families {
			p = append(p, unix.SockFilter{Code: jumpSame, Jt: uint8(n - i), K: family})
		}
	}
	return append(p, unix.SockFilter{Code: answer, K: miss}, unix.SockFilter{Code: answer, K: hit})
}

// install puts the filter on the calling thread, for good.
func (p program) install() error {
	prog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	_, _, no := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(p)
	if no != 0 {
		return fmt.Errorf("filter system calls: %w", no)
	}
	return nil
}

// programs are made once, by what they are for.
var programs = sync.OnceValue(func() map[purpose]program {
	all := map[purpose]program{}
	for _, guard := range []bool{false, true} {
		for network, filter := range map[network]func() filter{allOfIt: filesFilter, noNetwork: networkFilter, proxied: proxiedFilter, proxiedUnix: proxiedUnixFilter} {
			f := filter()
			if guard {
				maps.Copy(f, guardFilter())
			}
			all[purpose{guard, network}] = f.program()
		}
	}
	return all
})

// purpose is what a command's filter depends on.
type purpose struct {
	guard   bool
	network network
}
