// Package image builds, imports, pulls, lists and removes the images in a
// containerd's store. Every image that it makes is unpacked, so that a container
// can start from it at once.
//
// The functions take a containerd client of any kind. The context must carry
// the containerd namespace. What they write is held by a lease until it is
// complete: an operation that fails or is cancelled leaves nothing in the store.
package image
