// Package masking keeps credentials out of a command. Its environment gets
// placeholders in their place, and the command's proxy puts the credentials back,
// into requests to the hosts that they are for. Nothing of it runs in the agent.
package masking
