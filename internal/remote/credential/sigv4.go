package credential

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"
)

const (
	// DefaultAWSService is what signatures are made for if nothing else is said.
	DefaultAWSService = "execute-api"
	// awsTime bounds the look for credentials, which may ask services for them.
	awsTime = 30 * time.Second
)

// AWS says how SigV4 signs. What is empty comes from where AWS's tools have it:
// AWS_PROFILE, AWS_REGION, the shared files, the machine's own role.
type AWS struct {
	Profile, Region string
	Service         string // DefaultAWSService if empty
}

type sigV4 struct {
	lasting
	region, service string
	provider        aws.CredentialsProvider
	now             func() time.Time
}

// SigV4 signs with the credentials that AWS's usual chain finds, and renews them as
// it does. That there are some, and a region, is checked now.
func SigV4(ctx context.Context, a AWS) (Source, error) {
	ctx, cancel := context.WithTimeout(ctx, awsTime)
	defer cancel()
	// What the SDK would print is no line of our log; what matters comes as an error.
	options := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{})}
	if a.Profile != "" {
		options = append(options, config.WithSharedConfigProfile(a.Profile))
	}
	if a.Region != "" {
		options = append(options, config.WithRegion(a.Region))
	}
	c, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("AWS configuration: %w", err)
	}
	if c.Region == "" {
		return nil, errors.New("AWS SDK config did not resolve a region; name one with --aws-region, aws_region or AWS_REGION")
	}
	s := &sigV4{region: c.Region, service: a.Service, provider: c.Credentials, now: time.Now}
	if s.service == "" {
		s.service = DefaultAWSService
	}
	if _, err := s.credentials(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *sigV4) credentials(ctx context.Context) (aws.Credentials, error) {
	if s.provider == nil {
		return aws.Credentials{}, &unavailable{errors.New("failed to load AWS credentials: there are none")}
	}
	c, err := s.provider.Retrieve(ctx)
	if err != nil {
		return c, &unavailable{fmt.Errorf("failed to load AWS credentials: %w", err)}
	}
	return c, nil
}

// Authorize signs the host, the date and the content type, if there is one, and
// no other header, as the reference does.
func (s *sigV4) Authorize(ctx context.Context, r *http.Request, body []byte) error {
	c, err := s.credentials(ctx)
	if err != nil {
		return err
	}
	// The signer signs all headers that it finds, so that it gets a request with
	// those alone.
	bare := &http.Request{Method: r.Method, URL: normal(r.URL), Host: r.Host, Header: http.Header{}}
	if kind := r.Header.Get("Content-Type"); kind != "" {
		bare.Header.Set("Content-Type", kind)
	}
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(ctx, c, bare, hex.EncodeToString(sum[:]), s.service, s.region, s.now()); err != nil {
		return fmt.Errorf("sign the request: %w", err)
	}
	for _, name := range []string{"Authorization", "X-Amz-Date", "X-Amz-Security-Token"} {
		v := bare.Header.Get(name)
		if v == "" {
			continue
		}
		if strings.IndexFunc(v, func(r rune) bool { return r < ' ' || r > '~' }) >= 0 {
			return &unavailable{errors.New("failed to load AWS credentials: they have other than visible ASCII characters")}
		}
		r.Header.Set(name, v)
	}
	return nil
}

// normal is the URL with the path that signatures are made over: without empty and
// dot segments. The signer leaves that to its callers.
func normal(u *url.URL) *url.URL {
	n := *u
	escaped := u.EscapedPath()
	clean := path.Clean("/" + escaped)
	if strings.HasSuffix(escaped, "/") && clean != "/" {
		clean += "/"
	}
	if unescaped, err := url.PathUnescape(clean); err == nil {
		n.Path, n.RawPath = unescaped, clean
	}
	return &n
}

func (s *sigV4) Allows(base *url.URL) error { return secureRule(base) }
func (s *sigV4) Scoped() bool               { return false }
