// Package nodepool keeps as many Machines as each NodePool asks for.
//
// A pool's Machines are those whose controller it is by ownerReference; labels decide nothing. Before it creates or
// deletes, the controller reads the Machines once more from the API server itself: its cache may lag behind its own
// last creation, and deciding on that would create twice. Within one leader a pool is reconciled by one goroutine at
// a time, so that read is the whole truth. Should a former leader still write after its lease was lost, the surplus
// Machine is the newest and not Ready, hence the first to go. Names that are derived from slots would exclude that
// too, but a Machine that is being released keeps its slot's name for as long as an erase takes, and its replacement
// must not wait for that.
//
// A Machine is made without a revision: it takes the NodeType's stable one at its claim, also while a Rollout is on its way
// or has stopped, and the Rollout moves it later. A Machine that is being rolled is not Ready and still counts as one:
// the pool makes none in its place. When the pool shrinks it may be the first to go, for it is worth least at that moment.
package nodepool
