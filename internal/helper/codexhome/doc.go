// Package codexhome reads what belongs to Codex in the sandbox: the layers of its
// configuration, and the skills and plugins that are installed for the user. Which
// files count, in which order, and what is said about them is the reference
// executor's behaviour. Everything read is foreign: files are bounded, and only
// regular ones are opened.
package codexhome
