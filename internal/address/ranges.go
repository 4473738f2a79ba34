package address

import "net/netip"

// metadata are the addresses of the clouds' metadata, credential and host services.
// Not all of them are link-local.
var metadata = set(
	"169.254.169.254",           // AWS, Azure, Google, Oracle, OpenStack and most others
	"169.254.169.253",           // AWS: resolver
	"169.254.169.123",           // AWS: time
	"169.254.170.2",             // AWS: credentials of ECS tasks
	"169.254.170.23",            // AWS: credentials of EKS pods
	"169.254.0.23",              // Tencent
	"169.254.42.42",             // Scaleway
	"100.100.100.200",           // Alibaba
	"100.96.0.96",               // Volcengine
	"168.63.129.16",             // Azure: host agent
	"192.0.0.192",               // Oracle
	"fd00:ec2::254",             // AWS
	"fd00:ec2::253",             // AWS: resolver
	"fd00:ec2::123",             // AWS: time
	"fd00:ec2::23",              // AWS: credentials of EKS pods
	"fd20:ce::254",              // Google
	"fd00:42::42",               // Scaleway
	"fd00:c1::a9fe:a9fe",        // Oracle
	"fd00:a9fe:a9fe::1",         // Akamai
	"fe80::a9fe:a9fe",           // OpenStack
	"2001:19f0:fc00::a9fe:a9fe", // Vultr
)

func set(addrs ...string) map[netip.Addr]bool {
	m := make(map[netip.Addr]bool, len(addrs))
	for _, a := range addrs {
		m[netip.MustParseAddr(a)] = true
	}
	return m
}

// ranges that are not the public network's, from IANA's registries of special
// addresses. An address that programs connect to and mean this machine is loopback.
var ranges = []struct {
	netip.Prefix
	kind Kind
}{
	{netip.MustParsePrefix("0.0.0.0/8"), Loopback},
	{netip.MustParsePrefix("10.0.0.0/8"), Private},
	{netip.MustParsePrefix("100.64.0.0/10"), Private}, // between a carrier and its customers
	{netip.MustParsePrefix("127.0.0.0/8"), Loopback},
	{netip.MustParsePrefix("169.254.0.0/16"), LinkLocal},
	{netip.MustParsePrefix("172.16.0.0/12"), Private},
	{netip.MustParsePrefix("192.0.0.0/24"), Reserved},
	{netip.MustParsePrefix("192.0.2.0/24"), Reserved},
	{netip.MustParsePrefix("192.168.0.0/16"), Private},
	{netip.MustParsePrefix("198.18.0.0/15"), Reserved},
	{netip.MustParsePrefix("198.51.100.0/24"), Reserved},
	{netip.MustParsePrefix("203.0.113.0/24"), Reserved},
	{netip.MustParsePrefix("224.0.0.0/4"), Reserved},
	{netip.MustParsePrefix("240.0.0.0/4"), Reserved},
	{netip.MustParsePrefix("::/128"), Loopback},
	{netip.MustParsePrefix("::1/128"), Loopback},
	{netip.MustParsePrefix("100::/64"), Reserved},
	{netip.MustParsePrefix("2001::/32"), Reserved}, // Teredo: its relays reach any IPv4 address
	{netip.MustParsePrefix("2001:2::/48"), Reserved},
	{netip.MustParsePrefix("2001:10::/28"), Reserved},
	{netip.MustParsePrefix("2001:db8::/32"), Reserved},
	{netip.MustParsePrefix("3fff::/20"), Reserved},
	{netip.MustParsePrefix("5f00::/16"), Reserved},
	{netip.MustParsePrefix("fc00::/7"), Private},
	{netip.MustParsePrefix("fe80::/10"), LinkLocal},
	{netip.MustParsePrefix("fec0::/10"), Private}, // site-local, as some still have it
	{netip.MustParsePrefix("ff00::/8"), Reserved},
}

// global is what IANA has given out of IPv6.
var global = netip.MustParsePrefix("2000::/3")

// embedding prefixes carry an IPv4 address that a gateway may connect to, from
// the byte given on.
var embedding = []struct {
	netip.Prefix
	at int
}{
	{netip.MustParsePrefix("::/96"), 12},
	{netip.MustParsePrefix("64:ff9b::/96"), 12},
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12},
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12},
	{netip.MustParsePrefix("2002::/16"), 2},
}
