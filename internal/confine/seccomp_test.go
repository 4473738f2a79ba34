package confine

import (
	"testing"

	"golang.org/x/sys/unix"
)

// judge runs a program as the kernel would, for a call with one argument.
func (p program) judge(t *testing.T, arch uint32, number int, first uint32) uint32 {
	t.Helper()
	return p.judgeTwo(t, arch, number, first, unix.SOCK_STREAM|unix.SOCK_CLOEXEC)
}

func (p program) judgeTwo(t *testing.T, arch uint32, number int, first, second uint32) uint32 {
	t.Helper()
	words := map[uint32]uint32{offNumber: uint32(number), offArch: arch, offFirst: first, offSecond: second}
	var a uint32
	for pc := 0; pc < len(p); pc++ {
		in := p[pc]
		jump := func(yes bool) {
			if pc += int(in.Jf); yes {
				pc += int(in.Jt) - int(in.Jf)
			}
		}
		switch in.Code {
		case loadWord:
			a = words[in.K]
		case jumpSame:
			jump(a == in.K)
		case jumpFrom:
			jump(a >= in.K)
		case jumpBits:
			jump(a&in.K != 0)
		case unix.BPF_JMP | unix.BPF_JA:
			pc += int(in.K)
		case keepBits:
			a &= in.K
		case answer:
			return in.K
		default:
			t.Fatalf("instruction %d has code %#x", pc, in.Code)
		}
	}
	t.Fatal("the program has no end")
	return 0
}

func TestProgramsSayWhatFiltersSay(t *testing.T) {
	for name, f := range map[string]filter{"network": networkFilter(), "files": filesFilter(), "proxied": proxiedFilter(), "unix": proxiedUnixFilter(), "guard": guardFilter()} {
		p := f.program()
		for n := range 600 {
			for _, first := range []uint32{0, unix.AF_UNIX, unix.AF_INET, unix.AF_PACKET, unix.AF_VSOCK, 17, unix.CLONE_NEWUSER | 17, unix.CLONE_NEWNS, unix.CLONE_VM} {
				want := uint32(allow)
				if r, ok := f[n]; ok {
					hit := len(r.families) == 0 && r.bits == 0 && !r.pairs || r.bits&first != 0 || r.pairs && first != unix.AF_UNIX
					for _, family := range r.families {
						hit = hit || family == first
					}
					if hit != r.others {
						want = r.what
					}
				}
				if got := p.judge(t, nativeArch, n, first); got != want {
					t.Errorf("%s: call %d with %#x: %#x, want %#x", name, n, first, got, want)
				}
			}
		}
		if got := p.judge(t, unix.AUDIT_ARCH_I386, 1, 0); got != unix.SECCOMP_RET_KILL_PROCESS {
			t.Errorf("%s: a call of another machine: %#x", name, got)
		}
	}
	if got := networkFilter().program().judge(t, unix.AUDIT_ARCH_X86_64, 1<<30|41, unix.AF_INET); nativeArch == unix.AUDIT_ARCH_X86_64 && got != unix.SECCOMP_RET_KILL_PROCESS {
		t.Errorf("x32: %#x", got)
	}
}

// A datagram socket needs no connection to send somewhere.
func TestPairsAreOfStreams(t *testing.T) {
	for name, f := range map[string]filter{"network": networkFilter(), "proxied": proxiedFilter()} {
		for kind, want := range map[uint32]uint32{
			unix.SOCK_STREAM: allow, unix.SOCK_SEQPACKET: allow, unix.SOCK_STREAM | unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC: allow,
			unix.SOCK_DGRAM: refused, unix.SOCK_RAW: refused, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC: refused,
		} {
			if got := f.program().judgeTwo(t, nativeArch, unix.SYS_SOCKETPAIR, unix.AF_UNIX, kind); got != want {
				t.Errorf("%s: a pair of kind %#x: %#x", name, kind, got)
			}
		}
	}
}
