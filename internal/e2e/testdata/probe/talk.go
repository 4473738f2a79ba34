package main

import (
	"bufio"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

func banner(to string) (line string, err error) {
	err = connect(to, func(c net.Conn) (err error) {
		line, err = bufio.NewReader(c).ReadString('\n')
		return err
	})
	return strings.TrimSpace(line), err
}

// requests makes one request for each host over a connection, and tells the statuses.
func requests(to string, hosts []string) (told string, err error) {
	return told, connect(to, func(c net.Conn) error {
		r := bufio.NewReader(c)
		for _, host := range hosts {
			status, err := request(c, r, host)
			if err != nil {
				return fmt.Errorf("%w after %q", err, told)
			}
			told = strings.TrimSpace(told + " " + status)
		}
		return nil
	})
}

func request(w io.Writer, r *bufio.Reader, host string) (string, error) {
	if _, err := fmt.Fprintf(w, "GET /probe HTTP/1.1\r\nHost: %s\r\n\r\n", host); err != nil {
		return "", err
	}
	answer, err := http.ReadResponse(r, nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	_, err = io.Copy(io.Discard, answer.Body)
	return fmt.Sprint(answer.StatusCode), err
}

func overTLS(to, sni, host string) (told string, err error) {
	if sni == "-" {
		sni = ""
	}
	return told, connect(to, func(c net.Conn) (err error) {
		told, err = secured(c, &tls.Config{ServerName: sni, InsecureSkipVerify: true}, host)
		return err
	})
}

func secured(c net.Conn, config *tls.Config, host string) (string, error) {
	t := tls.Client(c, config)
	if err := t.Handshake(); err != nil {
		return "", err
	}
	if host == "" {
		host = config.ServerName
	}
	return request(t, bufio.NewReader(t), host)
}

// hidden says inner where only who has a key sees it, and outer to everybody.
func hidden(to, outer, inner string) (told string, err error) {
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return "", err
	}
	return told, connect(to, func(c net.Conn) (err error) {
		told, err = secured(c, &tls.Config{
			ServerName: inner, MinVersion: tls.VersionTLS13, EncryptedClientHelloConfigList: configList(outer, key.PublicKey().Bytes()),
			// The server has not got the key and refuses it, which says that it was reached.
			EncryptedClientHelloRejectionVerify: func(tls.ConnectionState) error { return nil },
		}, inner)
		return err
	})
}

// configList is an ECHConfigList of one: RFC 9849, section 4.
func configList(public string, key []byte) []byte {
	be := binary.BigEndian
	b := []byte{7, 0, 0x20} // config_id, DHKEM(X25519, HKDF-SHA256)
	b = append(be.AppendUint16(b, uint16(len(key))), key...)
	b = append(b, 0, 4, 0, 1, 0, 1) // HKDF-SHA256, AES-128-GCM
	b = append(append(b, 0, byte(len(public))), public...)
	b = append(b, 0, 0) // extensions
	one := append(be.AppendUint16(be.AppendUint16(nil, 0xfe0d), uint16(len(b))), b...)
	return append(be.AppendUint16(nil, uint16(len(one))), one...)
}

func datagram(to string) (string, error) {
	c, err := net.Dial("udp", to)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	// A denial may come as the answer to the first and be told at the second.
	for range 3 {
		_ = c.SetDeadline(time.Now().Add(patience))
		if _, err = io.WriteString(c, "probe"); err == nil {
			data := make([]byte, 16)
			n, err := c.Read(data)
			return string(data[:n]), err
		}
	}
	return "", err
}
