package credential

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/exec-server/exec-server/internal/secret"
)

// accountHeader names the account of a token of ChatGPT.
const accountHeader = "Chatgpt-Account-Id"

// The words are the reference's.
var (
	errChatGPTLine    = errors.New("expected a bounded, newline-terminated ChatGPT access token")
	errChatGPTToken   = errors.New("invalid ChatGPT access token")
	errChatGPTURL     = errors.New("ChatGPT token registry URLs must use HTTPS without userinfo or fragments")
	errChatGPTAccount = errors.New("--chatgpt-account-id does not match the token")
	errChatGPTNoID    = errors.New("token has no ChatGPT account ID; supply --chatgpt-account-id")
)

type chatGPT struct {
	lasting
	token   secret.Secret
	account string
}

// ChatGPTStdin is the access token of ChatGPT on the first line of r, which is
// waited for. The token tells its account; accountID may be empty, or has to be
// the same, and is needed if the token has none. It goes over https only.
func ChatGPTStdin(r io.Reader, accountID string) (Source, error) {
	line, err := firstLine(r, errChatGPTLine)
	if err != nil {
		return nil, err
	}
	token, err := secret.Token(line)
	if err != nil {
		return nil, errChatGPTToken
	}
	account, err := accountOf(line)
	switch {
	case err != nil:
		return nil, err
	case account == "" && accountID == "":
		return nil, errChatGPTNoID
	case account != "" && accountID != "" && account != accountID:
		return nil, errChatGPTAccount
	case account == "":
		account = accountID
	}
	if !isHeaderValue(account) {
		return nil, errChatGPTToken
	}
	return &chatGPT{token: token, account: account}, nil
}

// accountOf reads the account out of a token, without a check of the signature:
// whom the token convinces is the registry's business.
func accountOf(token string) (string, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", errChatGPTToken
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || !json.Valid(claims) {
		return "", errChatGPTToken
	}
	var j struct {
		Auth struct {
			Account string `json:"chatgpt_account_id"`
		} `json:"https://api.openai.com/auth"`
	}
	_ = json.Unmarshal(claims, &j) // claims of another form tell no account
	return j.Auth.Account, nil
}

func (c *chatGPT) Authorize(_ context.Context, r *http.Request, _ []byte) error {
	bearer(r, c.token)
	r.Header.Set(accountHeader, c.account)
	return nil
}

func (c *chatGPT) Allows(base *url.URL) error {
	if base.Scheme != "https" || base.User != nil || base.Fragment != "" {
		return errChatGPTURL
	}
	return nil
}

func (c *chatGPT) Scoped() bool { return false }
