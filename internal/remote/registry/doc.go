// Package registry makes the calls of an executor to the registry of environments:
// it registers an environment for the encrypted or the direct transport, and has
// the keys of harnesses validated. Answers are checked to the last field, and the
// texts of errors are the reference's.
package registry
