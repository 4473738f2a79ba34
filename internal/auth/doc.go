// Package auth decides whether a harness may connect to the WebSocket listener:
// by a capability token that both sides know, or by a JSON Web Token that
// whoever knows a secret has signed. Its words are part of the protocol
// (section 2). No token and no secret ever gets into an error or a log.
package auth
