// Package wsframe writes the frames of WebSocket connections, and holds those that
// come to a size. The library reads whole messages and knows no limit of frames;
// what it writes costs a system call for each message.
package wsframe
