package dist

// op is the operation of a control message, its first element.
type op int64

// The control messages of the chapter "Protocol between Connected Nodes". Each
// is a tuple; the elements after the operation stand beside it. "+ message"
// marks those that a second term follows. In the _TT forms a trace token is
// appended to the tuple.
const (
	opLink                op = 1  // FromPid, ToPid
	opSend                op = 2  // Unused, ToPid + message
	opExit                op = 3  // FromPid, ToPid, Reason
	opUnlink              op = 4  // FromPid, ToPid; before UNLINK_ID
	opNodeLink            op = 5  //
	opRegSend             op = 6  // FromPid, Unused, ToName + message
	opGroupLeader         op = 7  // FromPid, ToPid
	opExit2               op = 8  // FromPid, ToPid, Reason
	opSendTT              op = 12 // Unused, ToPid, TraceToken + message
	opExitTT              op = 13 // FromPid, ToPid, TraceToken, Reason
	opRegSendTT           op = 16 // FromPid, Unused, ToName, TraceToken + message
	opExit2TT             op = 18 // FromPid, ToPid, TraceToken, Reason
	opMonitorP            op = 19 // FromPid, ToProc, Ref
	opDemonitorP          op = 20 // FromPid, ToProc, Ref
	opMonitorPExit        op = 21 // FromProc, ToPid, Ref, Reason
	opSendSender          op = 22 // FromPid, ToPid + message
	opSendSenderTT        op = 23 // FromPid, ToPid, TraceToken + message
	opPayloadExit         op = 24 // FromPid, ToPid + reason
	opPayloadExitTT       op = 25 // FromPid, ToPid, TraceToken + reason
	opPayloadExit2        op = 26 // FromPid, ToPid + reason
	opPayloadExit2TT      op = 27 // FromPid, ToPid, TraceToken + reason
	opPayloadMonitorPExit op = 28 // FromProc, ToPid, Ref + reason
	opSpawnRequest        op = 29 // ReqId, From, GroupLeader, {M,F,A}, OptList + arguments
	opSpawnRequestTT      op = 30 // ReqId, From, GroupLeader, {M,F,A}, OptList, TraceToken + arguments
	opSpawnReply          op = 31 // ReqId, To, Flags, Result
	opSpawnReplyTT        op = 32 // ReqId, To, Flags, Result, TraceToken
	opAliasSend           op = 33 // FromPid, Alias + message
	opAliasSendTT         op = 34 // FromPid, Alias, TraceToken + message
	opUnlinkID            op = 35 // Id, FromPid, ToPid
	opUnlinkIDAck         op = 36 // Id, FromPid, ToPid
)
