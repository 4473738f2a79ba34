package netproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/exec-server/exec-server/internal/netproxy/policy"
	"github.com/exec-server/exec-server/internal/proto"
)

// Run is a proxy process: it reads its configuration from the agent, serves the
// sockets that it was given, and returns when the agent's end closes. file gives
// the inherited descriptors from 0 on: those that the configuration has, of the
// HTTP listener, the SOCKS5 listener, the datagram socket, and the bridges.
func Run(agent proto.Conn, file func(n int) *os.File) error {
	first, err := agent.ReadFrame()
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	config, err := policy.ParseConfig(first.Body())
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l := &link{agent: agent, gone: make(chan struct{}), pending: make(map[uint64]chan policy.Answer)}
	var ask func(context.Context, policy.Target) policy.Answer
	if config.Ask {
		ask = l.ask
	}
	p, err := New(&config, l.report, ask)
	if err != nil {
		return err
	}
	if err := p.serve(ctx, &config, file, cancel); err != nil {
		return err
	}
	return l.answers(ctx)
}

// serve begins to serve the sockets; one that fails ends the process.
func (p *Proxy) serve(ctx context.Context, config *policy.Config, file func(n int) *os.File, failed func()) error {
	next := 0
	open := func() (net.Listener, error) {
		next++
		return listener(file(next - 1))
	}
	var web, socks net.Listener
	var datagrams *relay
	var err error
	if config.HTTP {
		if web, err = open(); err != nil {
			return fmt.Errorf("HTTP listener: %w", err)
		}
	}
	if config.SOCKS {
		if socks, err = open(); err != nil {
			return fmt.Errorf("SOCKS5 listener: %w", err)
		}
	}
	if config.UDP {
		next++
		if datagrams, err = p.datagrams(file(next - 1)); err != nil {
			return fmt.Errorf("datagram socket: %w", err)
		}
		go func() { _ = datagrams.serve(ctx); failed() }()
	}
	if socks != nil {
		go func() { _ = p.serveSOCKS(ctx, socks, datagrams); failed() }()
	}
	if web != nil {
		go func() { _ = p.serveHTTP(ctx, web); failed() }()
	}
	for _, port := range config.Bridges {
		l, err := open()
		if err != nil {
			return fmt.Errorf("bridge to port %d: %w", port, err)
		}
		go func() { _ = p.serveBridge(ctx, l, port); failed() }()
	}
	if config.Steered {
		return p.serveSteered(ctx, open, func() (net.PacketConn, error) { next++; return packets(file(next - 1)) }, failed)
	}
	return nil
}

func (p *Proxy) serveSteered(ctx context.Context, open func() (net.Listener, error), datagrams func() (net.PacketConn, error), failed func()) error {
	s := &steered{p: p, names: newNames(), destination: original}
	streams, err := open()
	if err != nil {
		return fmt.Errorf("listener of steered connections: %w", err)
	}
	questions, err := open()
	if err != nil {
		return fmt.Errorf("DNS listener: %w", err)
	}
	for range 2 {
		conn, err := datagrams()
		if err != nil {
			return fmt.Errorf("DNS socket: %w", err)
		}
		go func() { _ = s.names.serveDatagrams(ctx, conn); failed() }()
	}
	go func() { _ = s.names.serveStreams(ctx, questions); failed() }()
	go func() { _ = s.serve(ctx, streams); failed() }()
	return nil
}

func packets(f *os.File) (net.PacketConn, error) {
	defer func() { _ = f.Close() }()
	return net.FilePacketConn(f)
}

func (p *Proxy) datagrams(f *os.File) (*relay, error) {
	conn, err := net.FilePacketConn(f)
	_ = f.Close()
	if err != nil {
		return nil, err
	}
	udp, ok := conn.(*net.UDPConn)
	if !ok {
		return nil, errors.New("it is not UDP's")
	}
	return newRelay(p, udp), nil
}

func listener(f *os.File) (net.Listener, error) {
	defer func() { _ = f.Close() }()
	return net.FileListener(f)
}
