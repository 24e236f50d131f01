// Messages up and down a tree of a communicator's members, rank 0 at its top. Waiting for a message has no
// limit in time, since a member may compute for hours before it sends, and ends with an error when a member
// is lost.
//
// A dead member never sends. So each member that waits checks ten times a second whether the processes of the
// other members on its own host still exist. A member that finds one gone sends a notice to the parent and
// the children of the lost member, which wait for it. A member that has received a notice leaves the tree
// with an error, and sends that error to its own parent and children in place of the message for which they
// wait. So all members learn of a death in bounded time, if another member lives on the host of the lost one.

#ifndef MCASTCOLL_MPI_OPENMPI_COLL_MCASTCOLL_TREE_H
#define MCASTCOLL_MPI_OPENMPI_COLL_MCASTCOLL_TREE_H

#include "coll_mcastcoll.h"

enum { kMccChildren = 32, kMccMostSends = 512 };

// The beginning of each message, and all of one that says that its sender leaves.
typedef struct {
    int32_t error;  // positive FI_E code, or 0
    int32_t lost;   // the rank that was lost, or -1
} MccHead;

typedef struct {
    ompi_communicator_t* comm;
    int rank, size, parent, first, children;  // ranks; first: of the children
    bool ends_up, ends_down;                  // the last message in this direction was sent
    MccHead end;                              // why this member leaves
    void* rooms[kMccChildren];  // for what is received from each child, or in the first from the parent
    // Below: for _tree.c only.
    MccHead notice;
    ompi_request_t *notices, *receives[kMccChildren];
    int left[kMccChildren + 2];  // ranks that have left
    int left_count;
    struct {
        int to;
        ompi_request_t* request;
    } sends[kMccMostSends];
    int send_count;
    MccNear* near;
    size_t near_count, next_near;
    double look_at_s;
} MccTree;

// Zeroed before. A failure is in `end`.
void mcc_tree_open(MccTree* t, ompi_communicator_t* comm);
// All of these return t->end.error, and nothing is sent or received any more once that is not 0. Memory of
// messages must stay until mcc_tree_drain() or mcc_tree_close() has returned true.
int mcc_tree_end(MccTree* t, int error, int lost);  // the first reason counts
int mcc_tree_look(MccTree* t);                      // for notices, and whether processes are gone
int mcc_tree_send(MccTree* t, int to, const void* bytes, size_t count);
int mcc_tree_send_children(MccTree* t, const void* bytes, size_t count);
int mcc_tree_receive_children(MccTree* t, const size_t* bytes);
int mcc_tree_receive_parent(MccTree* t, void* room, size_t bytes);
// Waits until all messages have been sent. False: a member is lost.
bool mcc_tree_drain(MccTree* t);
// Tells those that wait for this member why it leaves. The memory of the tree must stay.
void mcc_tree_leave(MccTree* t);
// After the last message. False: the memory of the tree must stay.
bool mcc_tree_close(MccTree* t);

#endif
