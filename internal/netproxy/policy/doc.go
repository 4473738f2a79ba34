// Package policy has the rules of a command's network proxy: which hosts a
// configuration lets through, and the messages in which the agent and the proxy
// process tell each other about it. It opens no connection, so that the agent
// can check a configuration without linking a proxy.
package policy
