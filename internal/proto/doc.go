// Package proto holds the wire protocol of exec-server: message framing, the
// JSON-RPC envelope, error codes, file URIs and the helpers that decode params
// and encode results. It does no I/O of its own and imports only the standard
// library, so that the agent stays small.
package proto
