package confine

import "encoding/binary"

// initProgram is the first process of a PID namespace: a static executable of
// some hundred bytes. It mounts the namespace's /proc, tells how that went with
// one byte, its errno, on descriptor 1, and stays until descriptor 0 comes to its
// end, which takes the namespace down. Orphans are reaped by the kernel, as
// SIGCHLD is ignored.
//
// A shell or a second copy of the agent would do the same, but the image need
// not have the one, and the other costs a thousand times as much to start.
var initProgram = executable([]byte{
	0xbf, 0x0f, 0, 0, 0, //              mov  edi, PR_SET_NAME
	0x48, 0x8d, 0x35, 0x94, 0, 0, 0, //  lea  rsi, "sandbox-init"
	0xb8, 0x9d, 0, 0, 0, //              mov  eax, SYS_prctl
	0x0f, 0x05, //                       syscall
	0x48, 0x8d, 0x3d, 0x7b, 0, 0, 0, //  lea  rdi, "proc"
	0x48, 0x8d, 0x35, 0x79, 0, 0, 0, //  lea  rsi, "/proc"
	0x48, 0x89, 0xfa, //                 mov  rdx, rdi
	0x41, 0xba, 0x0e, 0, 0, 0, //        mov  r10d, MS_NOSUID|MS_NODEV|MS_NOEXEC
	0x45, 0x31, 0xc0, //                 xor  r8d, r8d
	0xb8, 0xa5, 0, 0, 0, //              mov  eax, SYS_mount
	0x0f, 0x05, //                       syscall
	0xf7, 0xd8, //                       neg  eax
	0x50,                               //                       push rax
	0x6a, 0, 0x6a, 0, 0x6a, 0, 0x6a, 1, // push 0, 0, 0, SIG_IGN
	0xbf, 0x11, 0, 0, 0, //              mov  edi, SIGCHLD
	0x48, 0x89, 0xe6, //                 mov  rsi, rsp
	0x31, 0xd2, //                       xor  edx, edx
	0x41, 0xba, 0x08, 0, 0, 0, //        mov  r10d, 8
	0xb8, 0x0d, 0, 0, 0, //              mov  eax, SYS_rt_sigaction
	0x0f, 0x05, //                       syscall
	0xbf, 0x01, 0, 0, 0, //              mov  edi, 1
	0x48, 0x8d, 0x74, 0x24, 0x20, //     lea  rsi, [rsp+32]
	0xba, 0x01, 0, 0, 0, //              mov  edx, 1
	0xb8, 0x01, 0, 0, 0, //              mov  eax, SYS_write
	0x0f, 0x05, //                       syscall
	0xbf, 0x01, 0, 0, 0, //              mov  edi, 1
	0xb8, 0x03, 0, 0, 0, //              mov  eax, SYS_close
	0x0f, 0x05, //                       syscall
	0x31, 0xff, //                 wait: xor  edi, edi
	0x48, 0x89, 0xe6, //                 mov  rsi, rsp
	0xba, 0x01, 0, 0, 0, //              mov  edx, 1
	0x31, 0xc0, //                       xor  eax, eax (SYS_read)
	0x0f, 0x05, //                       syscall
	0x48, 0x83, 0xf8, 0xfc, //           cmp  rax, -EINTR
	0x74, 0xec, //                       je   wait
	0x31, 0xff, //                       xor  edi, edi
	0xb8, 0xe7, 0, 0, 0, //              mov  eax, SYS_exit_group
	0x0f, 0x05, //                       syscall
	'p', 'r', 'o', 'c', 0, '/', 'p', 'r', 'o', 'c', 0,
	's', 'a', 'n', 'd', 'b', 'o', 'x', '-', 'i', 'n', 'i', 't', 0,
})

// executable wraps code that needs no memory but its stack into an ELF file.
func executable(code []byte) []byte {
	const headers, base = 64 + 56, 0x400000
	le := binary.LittleEndian
	b := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...)
	b = le.AppendUint16(b, 2)            // executable
	b = le.AppendUint16(b, 62)           // x86-64
	b = le.AppendUint32(b, 1)            // version
	b = le.AppendUint64(b, base+headers) // entry
	b = le.AppendUint64(b, 64)           // program headers
	b = le.AppendUint64(b, 0)            // section headers
	b = le.AppendUint32(b, 0)            // flags
	for _, n := range []uint16{64, 56, 1, 64, 0, 0} {
		b = le.AppendUint16(b, n)
	}
	size := uint64(headers + len(code))
	b = le.AppendUint32(b, 1) // loaded
	b = le.AppendUint32(b, 5) // readable, executable
	for _, n := range []uint64{0, base, base, size, size, 0x1000} {
		b = le.AppendUint64(b, n)
	}
	return append(b, code...)
}
