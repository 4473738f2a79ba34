package credential

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

const awsSecret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"

// TestReferenceSignatures has requests that the reference signed.
func TestReferenceSignatures(t *testing.T) {
	const plain, session = "content-type;host;x-amz-date", "content-type;host;x-amz-date;x-amz-security-token"
	for _, tt := range []struct {
		name, method, path, body, date    string
		region, service, session, headers string
		signature                         string
	}{
		{"register", "POST", "/pre%20fix//x/cloud/environment/e/direct/register", `{"transport":"direct_jsonrpc_v1"}`, "20261129T202308Z",
			"us-east-1", "execute-api", "", plain, "e89adec105b53545e03b7290bb143c97370b538861fe5f570ff8abb3398cfa9d"},
		{"upgrade", "GET", "/ws/a%20b//c?x=1&a=b%2Fc", "", "20261129T202308Z",
			"us-east-1", "execute-api", "", "host;x-amz-date", "8d3f02f5dcc287bb25afe17d5b37bee86258f1587c1b485baa0e2dbfab52f0bf"},
		{"register with a session", "POST", "/cloud/environment/e/direct/register", `{"transport":"direct_jsonrpc_v1"}`, "20261129T202311Z",
			"eu-west-3", "other", "session/token", session, "0c88ff773c143095971234b3bbf3461bff95dfb50a72d2357b72ebfa81842724"},
		{"upgrade with a session", "GET", "/ws/a%20b//c?x=1&a=b%2Fc", "", "20261129T202311Z",
			"eu-west-3", "other", "session/token", "host;x-amz-date;x-amz-security-token", "8bef22c0ec390d10e1498cf6f0eed98bca1dde7ef6967fdae798cdf4e65da8fb"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at, err := time.Parse("20060102T150405Z", tt.date)
			if err != nil {
				t.Fatal(err)
			}
			s := &sigV4{region: tt.region, service: tt.service, now: func() time.Time { return at },
				provider: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
					return aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: awsSecret, SessionToken: tt.session}, nil
				})}
			u, err := url.Parse("http://127.0.0.1:46067" + tt.path)
			if err != nil {
				t.Fatal(err)
			}
			r := &http.Request{Method: tt.method, URL: u, Host: u.Host, Header: http.Header{"Accept": {"*/*"}, "X-Other": {"y"}}, ContentLength: int64(len(tt.body))}
			if tt.method == "POST" {
				r.Header.Set("Content-Type", "application/json")
			}
			var body []byte
			if tt.body != "" {
				body = []byte(tt.body)
			}
			if err := s.Authorize(t.Context(), r, body); err != nil {
				t.Fatal(err)
			}
			want := "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/" + tt.date[:8] + "/" + tt.region + "/" + tt.service +
				"/aws4_request, SignedHeaders=" + tt.headers + ", Signature=" + tt.signature
			if got := r.Header.Get("Authorization"); got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
			if r.Header.Get("X-Amz-Date") != tt.date || r.Header.Get("X-Amz-Security-Token") != tt.session {
				t.Errorf("headers: %v", r.Header)
			}
			if r.URL.String() != u.String() || r.Header.Get("X-Other") != "y" {
				t.Error("the request was changed")
			}
		})
	}
}

// awsEnvironment takes away all that AWS's chain would look at.
func awsEnvironment(t *testing.T, pairs ...string) {
	home := t.TempDir()
	for _, name := range []string{
		"AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", home)
	t.Setenv("AWS_CONFIG_FILE", home+"/config")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", home+"/credentials")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	for i := 0; i < len(pairs); i += 2 {
		t.Setenv(pairs[i], pairs[i+1])
	}
}

func TestSigV4AtStart(t *testing.T) {
	t.Run("no region", func(t *testing.T) {
		awsEnvironment(t, "AWS_ACCESS_KEY_ID", "AKID", "AWS_SECRET_ACCESS_KEY", awsSecret)
		if _, err := SigV4(t.Context(), AWS{}); err == nil || !strings.Contains(err.Error(), "did not resolve a region") {
			t.Error(err)
		}
	})
	t.Run("no credentials", func(t *testing.T) {
		awsEnvironment(t, "AWS_REGION", "us-east-1")
		if _, err := SigV4(t.Context(), AWS{}); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "failed to load AWS credentials") {
			t.Error(err)
		}
	})
	t.Run("environment", func(t *testing.T) {
		awsEnvironment(t, "AWS_REGION", "us-east-1", "AWS_ACCESS_KEY_ID", "AKID", "AWS_SECRET_ACCESS_KEY", awsSecret)
		checkScope(t, AWS{}, "Credential=AKID/", "/us-east-1/execute-api/aws4_request")
		checkScope(t, AWS{Region: "eu-west-3", Service: "other"}, "Credential=AKID/", "/eu-west-3/other/aws4_request")
	})
	t.Run("profile", func(t *testing.T) {
		awsEnvironment(t)
		home := t.TempDir()
		t.Setenv("AWS_CONFIG_FILE", write(t, home+"/config", "[profile p]\nregion = ap-south-1\naws_access_key_id = AKPROFILE\naws_secret_access_key = "+awsSecret+"\n"))
		checkScope(t, AWS{Profile: "p"}, "Credential=AKPROFILE/", "/ap-south-1/execute-api/aws4_request")
		if _, err := SigV4(t.Context(), AWS{Profile: "q"}); err == nil {
			t.Error("a profile that is not there")
		}
	})
}

func checkScope(t *testing.T, a AWS, want ...string) {
	t.Helper()
	s, err := SigV4(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	r := request(t, "http://127.0.0.1/")
	if err := s.Authorize(t.Context(), r, nil); err != nil {
		t.Fatal(err)
	}
	for _, part := range want {
		if got := r.Header.Get("Authorization"); !strings.Contains(got, part) {
			t.Errorf("%q is not in %q", part, got)
		}
	}
	allow(t, s, "https://h.test", true)
	allow(t, s, "http://h.test", false)
}

// FuzzSigV4 has what a file of credentials, or a service that gives them out, may
// hold. The files themselves are read by AWS's library.
func FuzzSigV4(f *testing.F) {
	f.Add("AKIDEXAMPLE", "secret", "session/token", "us-east-1", "https://h.test/a%20b//c?x=1")
	f.Add("A\r\nX-Other: y", "", "é", "", "ws://h/%zz?%")
	f.Fuzz(func(t *testing.T, id, secret, session, region, to string) {
		u, err := url.Parse(to)
		if err != nil {
			return
		}
		s := &sigV4{region: region, service: DefaultAWSService, now: time.Now,
			provider: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: id, SecretAccessKey: secret, SessionToken: session}, nil
			})}
		r := &http.Request{Method: "GET", URL: u, Host: u.Host, Header: http.Header{}}
		if err := s.Authorize(t.Context(), r, nil); err != nil {
			return
		}
		for name, values := range r.Header {
			if len(values) != 1 || strings.IndexFunc(values[0], func(r rune) bool { return r < ' ' || r > '~' }) >= 0 {
				t.Errorf("%s: %q", name, values)
			}
		}
	})
}
