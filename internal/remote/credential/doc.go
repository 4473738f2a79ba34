// Package credential has what a daemon shows a registry to prove who it is: API
// keys, bearer tokens from files, variables, commands and standard input, the
// logins of codex, and the signatures of AWS. Each source knows to which registries
// its secret may go, and tells when it has another one. No error and no printed
// value contains a secret.
package credential
