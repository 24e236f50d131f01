// Messages up and down a tree of a communicator's members with rank 0 as the root. Waiting for a message has
// no time limit, since a member may compute for hours before it sends. Waiting ends with an error when a
// member is lost.
//
// A dead member never sends. So each waiting member checks ten times a second whether processes of other
// members on its own host still exist, eight of them at a time. A member that finds a process gone sends a
// notice to the parent and the children of the lost member, which wait for the lost member. A member that
// receives a notice leaves the tree with an error and sends this error to its own parent and children in
// place of the expected message. So all members learn of a death in bounded time, provided that another
// member runs on the host of the lost one.

#ifndef MCASTCOLL_MPI_OPENMPI_COLL_MCASTCOLL_TREE_H
#define MCASTCOLL_MPI_OPENMPI_COLL_MCASTCOLL_TREE_H

#include "coll_mcastcoll.h"

enum { kMccChildren = 32, kMccMaxSends = 512 };

// The head of each message. A member that leaves the tree sends only a head.
typedef struct {
    int32_t error;  // positive FI_E code, or 0
    int32_t lost;   // rank of the lost member, or -1
} MccHead;

typedef struct {
    ompi_communicator_t* comm;
    int rank, size, parent, first, children;  // ranks; `first` is the first child
    bool ends_up, ends_down;                  // the last message in this direction has been sent
    MccHead end;  // the reason why this member leaves, sent in the head of its last messages
    // Receive buffers, one per child. The first one also receives the parent's message.
    void* rooms[kMccChildren];
    // Used by _tree.c only.
    MccHead notice;
    ompi_request_t *notices, *receives[kMccChildren];
    int left[kMccChildren + 2];  // ranks of members that have left
    int left_count;
    struct {
        int to;
        ompi_request_t* request;
    } sends[kMccMaxSends];
    int send_count;
    MccHostPeer* host_peers;
    size_t host_peer_count, next_host_peer;
    double look_at_s;
} MccTree;

// `t` must be zeroed. A failure is reported in `end`.
void mcc_tree_open(MccTree* t, ompi_communicator_t* comm);
// The functions from mcc_tree_end() to mcc_tree_receive_parent() return t->end.error: 0, or the error with
// which this member must leave the tree. The memory of messages must stay until mcc_tree_drain() or
// mcc_tree_close() has returned true.
int mcc_tree_end(MccTree* t, int error, int lost);  // the first error is kept
int mcc_tree_look(MccTree* t);                      // checks for notices and for lost processes
int mcc_tree_send(MccTree* t, int to, const void* bytes, size_t count);
int mcc_tree_send_children(MccTree* t, const void* bytes, size_t count);
int mcc_tree_receive_children(MccTree* t, const size_t* bytes);
int mcc_tree_receive_parent(MccTree* t, void* room, size_t bytes);
// Waits until every message has been sent. False: a member is lost.
bool mcc_tree_drain(MccTree* t);
// Sends the reason for leaving to parent and children. The memory of the tree must stay for good, since
// messages may still be active.
void mcc_tree_leave(MccTree* t);
// Must be called after the last message. False: a notice may still arrive, so the memory of the tree must
// stay for good.
bool mcc_tree_close(MccTree* t);

#endif
